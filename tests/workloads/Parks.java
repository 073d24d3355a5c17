// SPDX-License-Identifier: MIT
package workload;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Parks ROUNDS: a thread waits in turn for three locks of java.util.concurrent and for four notices of another
 * thread, each for about 10 ms. Says "WAITED lock write permit object condition queue latch", in ns: how long it
 * waited for each, by its own clock; and "LEAST", the same by the other thread's: from when it has seen the first one
 * wait. On a busy machine the first one may have no CPU before and after a wait. Another thread waits for a queue from
 * the first to the last moment, which is "LASTED ns".
 */
public final class Parks {
    static final int KINDS = 7;
    static final ReentrantLock lock = new ReentrantLock();
    static final ReentrantReadWriteLock both = new ReentrantReadWriteLock();
    static final Semaphore semaphore = new Semaphore(1);
    static final Object object = new Object();
    static final ReentrantLock guard = new ReentrantLock();
    static final Condition condition = guard.newCondition();
    static final LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
    static final LinkedBlockingQueue<Integer> never = new LinkedBlockingQueue<>();
    static final long[] waited = new long[KINDS];
    static final long[] least = new long[KINDS];
    static Thread waiter;
    static volatile CountDownLatch latch;
    static volatile int turn; /* odd: the waiter may come; even: it has done its part */
    static boolean isNoticed; /* guarded by object, or by guard */
    static volatile boolean isOver;

    static void lock() {
        lock.lock();
        lock.unlock();
    }

    static void write() {
        both.writeLock().lock();
        both.writeLock().unlock();
    }

    static void permit() {
        semaphore.acquireUninterruptibly();
        semaphore.release();
    }

    static void object() throws InterruptedException {
        synchronized (object) {
            while (!isNoticed)
                object.wait();
            isNoticed = false;
        }
    }

    static void condition() throws InterruptedException {
        guard.lock();
        while (!isNoticed)
            condition.await();
        isNoticed = false;
        guard.unlock();
    }

    static void queue() throws InterruptedException {
        queue.take();
    }

    static void latch() throws InterruptedException {
        latch.await();
    }

    static void waitFor(int kind) throws InterruptedException {
        switch (kind) {
        case 0: lock(); break;
        case 1: write(); break;
        case 2: permit(); break;
        case 3: object(); break;
        case 4: condition(); break;
        case 5: queue(); break;
        default: latch();
        }
    }

    static void waitForAll(int rounds) {
        try {
            for (int i = 0; i < KINDS * rounds; i++) {
                while (turn != 2 * i + 1)
                    Thread.yield();
                long begin = System.nanoTime();
                waitFor(i % KINDS);
                waited[i % KINDS] += System.nanoTime() - begin;
                turn = 2 * i + 2;
            }
        } catch (InterruptedException unexpected) {
            throw new IllegalStateException(unexpected);
        }
        isOver = true;
    }

    static void letCome(int kind) throws InterruptedException {
        turn++;
        long since = Workload.seen(waiter, Thread.State.WAITING);
        Thread.sleep(10);
        least[kind] += System.nanoTime() - since;
    }

    static void notifyObject() {
        synchronized (object) {
            isNoticed = true;
            object.notifyAll();
        }
    }

    static void notifyCondition() {
        guard.lock();
        isNoticed = true;
        condition.signal();
        guard.unlock();
    }

    /** Holds the lock while the waiter comes, or lets it come and notifies it. */
    static void serve(int kind) throws InterruptedException {
        switch (kind) {
        case 0: lock.lock(); letCome(kind); lock.unlock(); break;
        case 1: both.writeLock().lock(); letCome(kind); both.writeLock().unlock(); break;
        case 2: semaphore.acquire(); letCome(kind); semaphore.release(); break;
        case 3: letCome(kind); notifyObject(); break;
        case 4: letCome(kind); notifyCondition(); break;
        case 5: letCome(kind); queue.add(kind); break;
        default: latch = new CountDownLatch(1); letCome(kind); latch.countDown();
        }
    }

    static void waitForEver() {
        try {
            never.take();
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    static void say(String what, long[] times) {
        StringBuilder text = new StringBuilder(what);
        for (long ns : times)
            text.append(' ').append(ns);
        Workload.say(text.toString());
    }

    public static void main(String[] args) throws Exception {
        int rounds = (int) Workload.argument(args, 0, 20);
        Workload.ready();
        Thread idle = new Thread(Parks::waitForEver, "idle");
        idle.setDaemon(true);
        idle.start();
        long idleSince = Workload.seen(idle, Thread.State.WAITING);
        waiter = new Thread(() -> waitForAll(rounds), "waiter");
        waiter.start();
        for (int i = 0; i < rounds; i++)
            for (int kind = 0; kind < KINDS; kind++) {
                int after = turn + 2;
                serve(kind);
                while (turn != after)
                    Thread.sleep(1);
            }
        while (!isOver)
            Thread.sleep(1);
        say("WAITED", waited);
        say("LEAST", least);
        Workload.say("LASTED " + (System.nanoTime() - idleSince));
        Workload.done();
    }
}
