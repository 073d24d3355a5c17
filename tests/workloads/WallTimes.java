// SPDX-License-Identifier: MIT
package workload;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * WallTimes SECONDS [IDLE]: threads that divide their time between methods: naps that sleep and wait, turns that hold a
 * lock and wait for it, works that never wait, born that live for some 25 ms, one in poll and epoll_wait, and IDLE that
 * wait for ever. Says "THREAD METHOD ns" for each, by its own clock, with the method "rest" for its start and end,
 * "BORN ns ns", the sum of the lives of the born and the time that passed, and "EINTR n".
 */
public final class WallTimes {
    static volatile long sink;
    static volatile boolean isOver;
    static final Object lock = new Object();

    interface Turn {
        void once(long[] spent) throws Exception;
    }

    static void inSleep() throws Exception {
        Thread.sleep(31);
    }

    static void inWait(Object monitor) throws Exception {
        synchronized (monitor) {
            monitor.wait(17);
        }
    }

    static void inMonitor(long[] spent) throws Exception {
        long begun = System.nanoTime(), got;
        synchronized (lock) {
            got = System.nanoTime();
            holds();
        }
        spent[0] += got - begun;
        spent[1] += System.nanoTime() - got;
    }

    static void holds() throws Exception {
        Thread.sleep(7);
    }

    static void works() {
        sink += TwoBusy.spin(200_000);
    }

    static void lives() {
        try {
            Thread.sleep(25);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    static Thread start(String name, String[] methods, Turn turn) {
        long begun = System.nanoTime();
        Thread thread = new Thread(() -> {
            long[] spent = new long[methods.length];
            try {
                while (!isOver)
                    turn.once(spent);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
            long rest = System.nanoTime() - begun;
            for (int i = 0; i < methods.length; i++) {
                Workload.say(name + " " + methods[i] + " " + spent[i]);
                rest -= spent[i];
            }
            Workload.say(name + " rest " + rest);
        }, name);
        thread.start();
        return thread;
    }

    static void nap(long[] spent) throws Exception {
        long begun = System.nanoTime(), slept;
        inSleep();
        slept = System.nanoTime();
        inWait(spent);
        spent[0] += slept - begun;
        spent[1] += System.nanoTime() - slept;
    }

    static void work(long[] spent) {
        long begun = System.nanoTime();
        works();
        spent[0] += System.nanoTime() - begun;
    }

    static void idle() {
        Object never = new Object();
        synchronized (never) {
            try {
                never.wait();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    /** One after the other, so that there is about one at a time. */
    static void bear(long endNs) throws Exception {
        AtomicLong lives = new AtomicLong();
        long begun = System.nanoTime();
        while (System.nanoTime() < endNs) {
            Thread born = new Thread(() -> {
                long from = System.nanoTime();
                lives();
                lives.addAndGet(System.nanoTime() - from);
            }, "born");
            born.start();
            born.join();
        }
        Workload.say("BORN " + lives.get() + " " + (System.nanoTime() - begun));
    }

    public static void main(String[] args) throws Exception {
        List<Thread> threads = new ArrayList<>();
        long seconds = Workload.argument(args, 0, 10), endNs;
        for (int i = 0; i < Workload.argument(args, 1, 0); i++) {
            Thread thread = new Thread(WallTimes::idle, "idle-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        Workload.ready();
        for (int i = 0; i < 2; i++) {
            threads.add(start("naps-" + i, new String[] {"inSleep", "inWait"}, WallTimes::nap));
            threads.add(start("turns-" + i, new String[] {"inMonitor", "holds"}, WallTimes::inMonitor));
            threads.add(start("works-" + i, new String[] {"works"}, WallTimes::work));
        }
        threads.add(new Thread(() -> {
            long[] seen = SystemCalls.interrupted(seconds * 1000);
            Workload.say("EINTR " + (seen[0] + seen[1] + seen[2]));
        }, "polls"));
        threads.get(threads.size() - 1).start();
        endNs = System.nanoTime() + seconds * 1_000_000_000L;
        bear(endNs);
        isOver = true;
        for (Thread thread : threads)
            thread.join();
        Workload.done();
    }
}
