// SPDX-License-Identifier: MIT
package workload;

/** Receivers: virtual and interface calls, each of objects of four classes in turn, so that no call is bound to one. */
public final class Receivers {
    interface Taken {
        long take(long from);
    }

    abstract static class Given {
        abstract long give(long from);
    }

    static final class A extends Given implements Taken {
        public long take(long from) {
            return from + 1;
        }

        long give(long from) {
            return from + 2;
        }
    }

    static final class B extends Given implements Taken {
        public long take(long from) {
            return from + 3;
        }

        long give(long from) {
            return from + 4;
        }
    }

    static final class C extends Given implements Taken {
        public long take(long from) {
            return from + 5;
        }

        long give(long from) {
            return from + 6;
        }
    }

    static final class D extends Given implements Taken {
        public long take(long from) {
            return from + 7;
        }

        long give(long from) {
            return from + 8;
        }
    }

    static volatile long sink;

    static long virtual(Given[] all) {
        long sum = 0;
        for (int i = 0; i < 1_000_000; i++)
            sum = all[i & 3].give(sum);
        return sum;
    }

    static long ofInterface(Taken[] all) {
        long sum = 0;
        for (int i = 0; i < 1_000_000; i++)
            sum = all[i & 3].take(sum);
        return sum;
    }

    public static void main(String[] args) throws Exception {
        Given[] given = {new A(), new B(), new C(), new D()};
        Taken[] taken = {new A(), new B(), new C(), new D()};
        Workload.ready();
        for (;;)
            sink += virtual(given) + ofInterface(taken);
    }
}
