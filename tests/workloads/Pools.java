// SPDX-License-Identifier: MIT
package workload;

import java.nio.channels.Selector;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * Threads "idle-N" that wait for work: those of pools, a timer and a selector, which get some every 50 ms. And threads
 * "waits-N", which wait within their work: for a queue in the task of a pool, and for a latch in that of a timer.
 */
public final class Pools {
    static final LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
    static volatile long sink;

    static ThreadFactory named(String name) {
        return task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        };
    }

    static void work() {
        sink++;
    }

    static void inQueue() {
        try {
            for (;;)
                sink += queue.take();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static void inTask() {
        try {
            new CountDownLatch(1).await(10, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static void select() {
        try (Selector selector = Selector.open()) {
            for (;;)
                sink += selector.select(50);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    static TimerTask timerTask(Runnable task) {
        return new TimerTask() {
            @Override
            public void run() {
                task.run();
            }
        };
    }

    public static void main(String[] args) throws Exception {
        ScheduledExecutorService clock = Executors.newScheduledThreadPool(1, named("idle-clock"));
        ExecutorService pool = Executors.newFixedThreadPool(1, named("idle-pool"));
        ExecutorService blocked = Executors.newFixedThreadPool(1, named("waits-queue"));
        ForkJoinPool forks = new ForkJoinPool(1);
        blocked.execute(Pools::inQueue);
        new Timer("idle-timer", true).schedule(timerTask(Pools::work), 0, 50);
        new Timer("waits-timer", true).schedule(timerTask(Pools::inTask), 0, 10);
        named("idle-select").newThread(Pools::select).start();
        clock.scheduleAtFixedRate(() -> {
            pool.execute(Pools::work);
            forks.execute(Pools::work);
            queue.add(1);
        }, 0, 50, TimeUnit.MILLISECONDS);
        Workload.ready();
        new CountDownLatch(1).await();
    }
}
