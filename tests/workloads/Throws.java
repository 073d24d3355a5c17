// SPDX-License-Identifier: MIT
package workload;

/**
 * Throws [SECONDS]: exceptions, thrown in many ways, that pass frames of many kinds. level1() calls level2(), and so on
 * to level12(), which has an exception thrown; some pass it on, others catch it, throw it or another again, or have it
 * pass native code. So whatever moment a sample meets, from main() on its frames are those of the levels in their
 * order, none left out.
 */
public final class Throws {
    static {
        System.loadLibrary("workload");
    }

    /** Thrown as it is, it costs no stack trace, only the way up. */
    private static final RuntimeException READY_MADE = new IllegalStateException("ready-made");
    private static final Object LOCK = new Object();
    private static final int WAYS = 12;

    static volatile long sink;
    static volatile int zero;
    static volatile Object nothing;
    static volatile Object text = "text";
    static volatile Object[] strings = new String[2];
    private static Level level = new Level();

    /** Calls level9() of this object from native code, and passes on what that has thrown. */
    static native void across(Level level, int way);

    /** Throws from native code. */
    static native void thrown(Level level);

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Workload.argument(args, 0, 6) * 1_000_000_000L;
        Workload.ready();
        while (System.nanoTime() < end)
            for (int i = 0; i < 2_000; i++)
                level0(i % WAYS);
        Workload.done();
    }

    static void level0(int way) {
        try {
            level1(way);
            throw new AssertionError("nothing thrown");
        } catch (RuntimeException expected) {
            sink++;
        }
    }

    static void level1(int way) {
        level2(way, way + 1);
        sink++;
    }

    static synchronized long level2(int way, long more) {
        level3(way);
        return sink + more;
    }

    static void level3(int way) {
        try {
            level4(way, 2, 3, 4, 5, 6, 7, 8, 1.5);
        } finally {
            sink++;
        }
    }

    static double level4(int way, int a, int b, int c, int d, int e, int f, int g, double h) {
        try {
            level5(way);
        } catch (IllegalStateException again) {
            sink += a + b + c + d;
            throw again;
        }
        return sink + e + f + g + h;
    }

    static void level5(int way) {
        synchronized (LOCK) {
            level.level6(way);
        }
        sink++;
    }

    static class Level {
        void level6(int way) {
            Runnable next = () -> level7(way);
            next.run();
            sink++;
        }

        private void level7(int way) {
            try {
                level8(way);
            } catch (ArithmeticException | ArrayStoreException other) {
                throw READY_MADE;
            }
        }

        private synchronized int level8(int way) {
            if (way % 4 != 0)
                return level9(way);
            across(this, way);
            return 0;
        }

        private int level9(int way) {
            level10(way);
            return (int) sink;
        }

        void level10(int way) {
            try {
                level11(way);
            } catch (ClassCastException never) {
                if (way != 6)
                    sink++;
                throw never;
            }
        }

        private void level11(int way) {
            sink += level12(way);
        }

        private long level12(int way) {
            switch (way) {
            case 0: throw READY_MADE;
            case 1: return 1 / zero;
            case 2: return nothing.hashCode();
            case 3: return strings[2].hashCode();
            case 4: throw new IllegalStateException("new");
            case 5: strings[1] = LOCK; return 0;
            case 6: return ((Integer) text);
            case 7: return new int[zero - 1].length;
            case 8: thrown(this); return 0;
            case 9: return Integer.parseInt("none");
            case 10: System.arraycopy(text, 0, strings, 0, 1); return 0;
            default: throw READY_MADE;
            }
        }
    }
}
