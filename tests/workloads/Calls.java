// SPDX-License-Identifier: MIT
package workload;

/**
 * Calls ROUNDS [virtual]: two threads, "first" and "second", call the methods of Target a known number of times each;
 * with "virtual" they are virtual threads (JDK 21+). The class Late is loaded by the first call of it.
 */
public final class Calls {
    static final class Target {
        final long value;

        Target(long value) {
            this(value, 1);
        }

        private Target(long value, int factor) {
            this.value = value > 0 ? value * factor : Math.abs(value);
        }

        static int plain(int i) {
            return i + 1;
        }

        static int plain(int i, String text) {
            return text == null ? i : i + text.length();
        }

        long many(int i, long wide, double real, String text, int[] numbers, Object... rest) {
            switch (i % 5) {
            case 0:
                return wide;
            case 1:
                return (long) real;
            case 2:
                return text.length();
            case 3:
                return numbers[0];
            default:
                return rest.length + value;
            }
        }

        static int recursive(int depth) {
            return depth == 0 ? 0 : 1 + recursive(depth - 1);
        }

        static int throwing(int i) {
            if (i % 2 == 0)
                throw new IllegalStateException();
            return i;
        }

        static int looping(int i) {
            while (i < 100)
                i += 7;
            return i;
        }

        synchronized long locked() {
            return value;
        }
    }

    static final class Late {
        static int called(int i) {
            return i;
        }
    }

    static long sum;

    static int caught(int i) {
        try {
            return Target.throwing(i);
        } catch (IllegalStateException expected) {
            return 0;
        }
    }

    static void callAll(int rounds) {
        long result = 0;
        for (int i = 0; i < rounds; i++) {
            Target target = new Target(i);
            result += Target.plain(i) + Target.plain(i, "text");
            result += target.many(i, 2, 3, "four", new int[] {5}, "six", "seven");
            result += Target.recursive(3) + caught(i) + Target.looping(i) + target.locked() + Late.called(i);
        }
        synchronized (Calls.class) {
            sum += result;
        }
    }

    static Thread start(String name, boolean isVirtual, Runnable body) throws Exception {
        if (isVirtual)
            return Virtual.start(name, body);
        Thread thread = new Thread(body, name);
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws Exception {
        int rounds = (int) Workload.argument(args, 0, 100);
        boolean isVirtual = args.length > 1 && args[1].equals("virtual");
        Workload.ready();
        Thread first = start("first", isVirtual, () -> callAll(rounds));
        Thread second = start("second", isVirtual, () -> callAll(2 * rounds));
        first.join();
        second.join();
        Workload.say("SUM " + sum);
        Workload.done();
    }
}
