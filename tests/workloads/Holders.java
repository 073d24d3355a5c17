// SPDX-License-Identifier: MIT
package workload;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Holders monitor|lock|native ROUNDS [keeper]: dining philosophers, phil-0 to phil-4, whose forks are monitors,
 * ReentrantLocks or mutexes of native code; with "keeper", phil-0 keeps a single fork for 4 ms each time, and the
 * others want it all the time. Says "PAIR phil-WAITER phil-HOLDER ns", by the threads' own clock: how long one waited
 * while another one held the fork. Holders give forks back in the method named after their kind.
 */
public final class Holders {
    static final int THREADS = 5;

    /** A fork, and who had it when. */
    static class Fork {
        final int number;
        final ReentrantLock lock = new ReentrantLock();
        final List<long[]> held = new ArrayList<>(); /* from, until, who; by who has the fork */

        Fork(int number) {
            this.number = number;
        }
    }

    static final class Wait {
        final Fork fork;
        final long from, until;

        Wait(Fork fork, long from, long until) {
            this.fork = fork;
            this.from = from;
            this.until = until;
        }
    }

    static native void take(int fork);

    static native void drop(int fork);

    static class Philosopher extends Thread {
        final int number;
        final long eatMicros, thinkMicros;
        final int rounds;
        final String kind;
        final Fork[] forks;
        final List<Wait> waits = new ArrayList<>();
        final Random random;

        Philosopher(int number, String kind, int rounds, Fork[] forks, long eatMicros, long thinkMicros) {
            super("phil-" + number);
            this.number = number;
            this.kind = kind;
            this.rounds = rounds;
            this.forks = forks;
            this.eatMicros = eatMicros;
            this.thinkMicros = thinkMicros;
            random = new Random(number);
        }

        void pause(long micros) {
            if (micros == 0)
                return;
            long until = System.nanoTime() + micros * 1000;
            try {
                Thread.sleep(micros / 1000, (int) (micros % 1000) * 1000);
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
            while (System.nanoTime() < until)
                Thread.yield();
        }

        long took(Fork fork, long began) {
            long now = System.nanoTime();
            waits.add(new Wait(fork, began, now));
            return now;
        }

        void gives(Fork fork, long from) {
            fork.held.add(new long[] {from, System.nanoTime(), number});
        }

        void eats(int next) {
            if (next < forks.length)
                takes(next);
            else
                pause(eatMicros / 2 + (eatMicros > 0 ? random.nextInt((int) eatMicros) : 0));
        }

        void monitor(int at) {
            Fork fork = forks[at];
            long began = System.nanoTime();
            synchronized (fork) {
                long from = took(fork, began);
                eats(at + 1);
                gives(fork, from);
            }
        }

        void lock(int at) {
            Fork fork = forks[at];
            long began = System.nanoTime();
            fork.lock.lock();
            long from = took(fork, began);
            eats(at + 1);
            gives(fork, from);
            fork.lock.unlock();
        }

        void mutex(int at) {
            Fork fork = forks[at];
            long began = System.nanoTime();
            take(fork.number);
            long from = took(fork, began);
            eats(at + 1);
            gives(fork, from);
            drop(fork.number);
        }

        void takes(int at) {
            if (kind.equals("monitor"))
                monitor(at);
            else if (kind.equals("lock"))
                lock(at);
            else
                mutex(at);
        }

        @Override
        public void run() {
            for (int i = 0; i < rounds; i++) {
                takes(0);
                pause(thinkMicros / 2 + (thinkMicros > 0 ? random.nextInt((int) thinkMicros) : 0));
            }
        }
    }

    /** Adds the time of a wait to those who held the fork meanwhile. */
    static void count(Philosopher who, Wait wait, TreeMap<String, Long> pairs) {
        List<long[]> held = wait.fork.held;
        for (int i = 0; i < held.size(); i++) {
            long from = Math.max(wait.from, held.get(i)[0]);
            long until = Math.min(wait.until, held.get(i)[1]);
            if (from < until)
                pairs.merge(who.getName() + " phil-" + held.get(i)[2], until - from, Long::sum);
        }
    }

    static Philosopher[] table(String kind, int rounds) {
        Philosopher[] all = new Philosopher[THREADS];
        Fork[] forks = new Fork[THREADS];
        for (int i = 0; i < THREADS; i++)
            forks[i] = new Fork(i);
        for (int i = 0; i < THREADS; i++) {
            Fork one = forks[Math.min(i, (i + 1) % THREADS)], other = forks[Math.max(i, (i + 1) % THREADS)];
            all[i] = new Philosopher(i, kind, rounds, new Fork[] {one, other}, 1500, 500);
        }
        return all;
    }

    static Philosopher[] keeper(String kind, int rounds) {
        Philosopher[] all = new Philosopher[THREADS - 1];
        Fork[] forks = {new Fork(0)};
        for (int i = 0; i < all.length; i++)
            all[i] = new Philosopher(i, kind, rounds, forks, i > 0 ? 0 : 4000, i > 0 ? 4000 : 1000);
        return all;
    }

    public static void main(String[] args) throws Exception {
        int rounds = (int) Workload.argument(args, 1, 200);
        TreeMap<String, Long> pairs = new TreeMap<>();
        System.loadLibrary("locks");
        Philosopher[] all = args.length > 2 ? keeper(args[0], rounds) : table(args[0], rounds);
        Workload.ready();
        for (Philosopher one : all)
            one.start();
        for (Philosopher one : all)
            one.join();
        for (Philosopher one : all)
            for (Wait wait : one.waits)
                count(one, wait, pairs);
        pairs.forEach((pair, ns) -> Workload.say("PAIR " + pair + " " + ns));
        Workload.done();
    }
}
