// SPDX-License-Identifier: MIT
package workload;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * VirtualParks THREADS ROUNDS MS (JDK 21+): so many virtual threads wait at the same time, each for about MS, and so
 * often for each of nine things in turn. Says "WAITED lock write permit monitor object condition queue latch sleep", in
 * ns: how long all waited for each, by their own clocks. Another virtual thread waits for a queue from the first to the
 * last moment, which is "LASTED ns".
 */
public final class VirtualParks {
    static final int KINDS = 9;
    static long ms;
    static final ReentrantLock lock = new ReentrantLock();
    static final ReentrantReadWriteLock both = new ReentrantReadWriteLock();
    static final Semaphore semaphore = new Semaphore(0);
    static final Object monitor = new int[0];
    static final Object object = new Object();
    static final ReentrantLock guard = new ReentrantLock();
    static final Condition condition = guard.newCondition();
    static final LinkedBlockingQueue<Integer> queue = new LinkedBlockingQueue<>();
    static final LinkedBlockingQueue<Integer> never = new LinkedBlockingQueue<>();
    static final AtomicLong[] waited = new AtomicLong[KINDS];
    static volatile CountDownLatch latch;
    static volatile CountDownLatch left;
    static boolean isNoticed; /* guarded by object, or by guard */
    static volatile long idleSince;

    static void lock() {
        long begin = System.nanoTime();
        lock.lock();
        waited[0].addAndGet(System.nanoTime() - begin);
        lock.unlock();
    }

    static void write() {
        long begin = System.nanoTime();
        both.writeLock().lock();
        waited[1].addAndGet(System.nanoTime() - begin);
        both.writeLock().unlock();
    }

    static void permit() {
        long begin = System.nanoTime();
        semaphore.acquireUninterruptibly();
        waited[2].addAndGet(System.nanoTime() - begin);
    }

    static void monitor() {
        long begin = System.nanoTime();
        synchronized (monitor) {
            waited[3].addAndGet(System.nanoTime() - begin);
        }
    }

    static void object() throws InterruptedException {
        synchronized (object) {
            long begin = System.nanoTime();
            while (!isNoticed)
                object.wait();
            waited[4].addAndGet(System.nanoTime() - begin);
        }
    }

    static void condition() throws InterruptedException {
        guard.lock();
        long begin = System.nanoTime();
        while (!isNoticed)
            condition.await();
        waited[5].addAndGet(System.nanoTime() - begin);
        guard.unlock();
    }

    static void queue() throws InterruptedException {
        long begin = System.nanoTime();
        queue.take();
        waited[6].addAndGet(System.nanoTime() - begin);
    }

    static void latch() throws InterruptedException {
        long begin = System.nanoTime();
        latch.await();
        waited[7].addAndGet(System.nanoTime() - begin);
    }

    static void sleep() throws InterruptedException {
        long begin = System.nanoTime();
        Thread.sleep(ms);
        waited[8].addAndGet(System.nanoTime() - begin);
    }

    static void waitFor(int kind) {
        try {
            switch (kind) {
            case 0: lock(); break;
            case 1: write(); break;
            case 2: permit(); break;
            case 3: monitor(); break;
            case 4: object(); break;
            case 5: condition(); break;
            case 6: queue(); break;
            case 7: latch(); break;
            default: sleep();
            }
        } catch (InterruptedException unexpected) {
            throw new IllegalStateException(unexpected);
        }
        left.countDown();
    }

    static void begin(int kind, int threads) throws Exception {
        left = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++)
            Virtual.start("waiter", () -> waitFor(kind));
        Thread.sleep(ms);
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
        condition.signalAll();
        guard.unlock();
    }

    static void serve(int kind, int threads) throws Exception {
        isNoticed = false;
        latch = new CountDownLatch(1);
        switch (kind) {
        case 0: lock.lock(); begin(kind, threads); lock.unlock(); break;
        case 1: both.writeLock().lock(); begin(kind, threads); both.writeLock().unlock(); break;
        case 2: begin(kind, threads); semaphore.release(threads); break;
        case 3:
            synchronized (monitor) {
                begin(kind, threads);
            }
            break;
        case 4: begin(kind, threads); notifyObject(); break;
        case 5: begin(kind, threads); notifyCondition(); break;
        case 6:
            begin(kind, threads);
            for (int i = 0; i < threads; i++)
                queue.add(i);
            break;
        case 7: begin(kind, threads); latch.countDown(); break;
        default: begin(kind, threads);
        }
        left.await();
    }

    static void waitForEver() {
        idleSince = System.nanoTime();
        try {
            never.take();
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] args) throws Exception {
        int threads = (int) Workload.argument(args, 0, 20);
        int rounds = (int) Workload.argument(args, 1, 4);
        ms = Workload.argument(args, 2, 30);
        for (int kind = 0; kind < KINDS; kind++)
            waited[kind] = new AtomicLong();
        Workload.ready();
        Virtual.start("idle", VirtualParks::waitForEver);
        for (int i = 0; i < KINDS * rounds; i++)
            serve(i % KINDS, threads);
        StringBuilder text = new StringBuilder("WAITED");
        for (AtomicLong ns : waited)
            text.append(' ').append(ns);
        Workload.say(text.toString());
        Workload.say("LASTED " + (System.nanoTime() - idleSince));
        Workload.done();
    }
}
