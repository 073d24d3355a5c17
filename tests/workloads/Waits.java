// SPDX-License-Identifier: MIT
package workload;

/**
 * Waits ROUNDS [virtual]: a thread waits for three locks, held for 5, 10 and 20 ms by another one, in turn; with
 * "virtual" it is a virtual thread (JDK 21+). Says "WAITED one two four", in ns: how long it waited for each, by
 * its own clock; and "LEAST", the same by the holder's: from when it has seen the waiter wait.
 */
public final class Waits {
    static final class One {
    }

    static final class Two {
    }

    static final Object one = new One();
    static final Object two = new Two();
    static final Object four = new int[0];
    static final long[] waited = new long[3];
    static final long[] least = new long[3];
    static Thread waiter;
    static volatile int turn; /* odd: the holder has the lock; even: the waiter has had it */
    static volatile boolean isOver;

    static void one() {
        synchronized (one) {
            turn++;
        }
    }

    static void two() {
        synchronized (two) {
            turn++;
        }
    }

    static void four() {
        synchronized (four) {
            turn++;
        }
    }

    static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    /** Takes the lock, lets the waiter come, and keeps it for a while. */
    static void hold(Object lock, int kind, long ms) {
        int mine = turn + 1;
        synchronized (lock) {
            turn = mine;
            long since = Workload.seen(waiter, Thread.State.BLOCKED);
            pause(ms);
            least[kind] += System.nanoTime() - since;
        }
        while (turn == mine)
            pause(1);
    }

    static void waitForAll(int rounds) {
        for (int i = 0; i < 3 * rounds; i++) {
            while (turn != 2 * i + 1)
                Thread.yield();
            long begin = System.nanoTime();
            if (i % 3 == 0)
                one();
            else if (i % 3 == 1)
                two();
            else
                four();
            waited[i % 3] += System.nanoTime() - begin;
        }
        isOver = true;
    }

    public static void main(String[] args) throws Exception {
        int rounds = (int) Workload.argument(args, 0, 50);
        Workload.ready();
        if (args.length > 1 && args[1].equals("virtual")) {
            waiter = Virtual.start("waiter", () -> waitForAll(rounds));
        } else {
            waiter = new Thread(() -> waitForAll(rounds), "waiter");
            waiter.start();
        }
        for (int i = 0; i < rounds; i++) {
            hold(one, 0, 5);
            hold(two, 1, 10);
            hold(four, 2, 20);
        }
        while (!isOver)
            pause(1);
        Workload.say("WAITED " + waited[0] + " " + waited[1] + " " + waited[2]);
        Workload.say("LEAST " + least[0] + " " + least[1] + " " + least[2]);
        Workload.done();
    }
}
