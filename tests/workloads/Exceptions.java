// SPDX-License-Identifier: MIT
package workload;

/**
 * Exceptions ROUNDS: creates exceptions, a known number of each kind, which are thrown and caught; run it with
 * -XX:-OmitStackTraceInFastThrow.
 */
public final class Exceptions {
    static class Own extends Exception {
        final String more;

        Own(String more) {
            super("own", null, false, false);
            this.more = more;
        }
    }

    static final class Deeper extends Own {
        Deeper() {
            super(new StringBuilder("deeper").toString());
        }
    }

    static long caught;

    static void state(int i) {
        try {
            throw new IllegalStateException("state " + i);
        } catch (IllegalStateException expected) {
            caught++;
        }
    }

    static void own(int i) {
        try {
            throw i % 2 == 0 ? new Own("more") : new Deeper();
        } catch (Own expected) {
            caught++;
        }
    }

    static void index(int[] numbers, int i) {
        try {
            caught += numbers[i + 1];
        } catch (ArrayIndexOutOfBoundsException expected) {
            caught++;
        }
    }

    /** Throws the same one twice. */
    static void again(String text) {
        try {
            try {
                caught += text.length();
            } catch (NullPointerException expected) {
                throw expected;
            }
        } catch (NullPointerException expected) {
            caught++;
        }
    }

    public static void main(String[] args) throws Exception {
        int rounds = (int) Workload.argument(args, 0, 100);
        Workload.ready();
        for (int i = 0; i < rounds; i++) {
            state(i);
            own(i);
            index(new int[1], i);
            again(null);
        }
        Workload.say("CAUGHT " + caught);
        Workload.done();
    }
}
