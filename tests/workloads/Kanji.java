// SPDX-License-Identifier: MIT
package workload;

/**
 * A class, a method and a thread whose names have characters above U+FFFF, an emoji and a rare kanji, which class files
 * encode as surrogates. The method computes, allocates objects of its class, and runs on.
 */
public final class Kanji {
    /** As long as the names that replace them: six bytes for each character. */
    private static final String CLASS = "Face01", METHOD = "yoshi1";
    private static final String EMOJI = "\u00ed\u00a0\u00bd\u00ed\u00b8\u0080";
    private static final String KANJI = "\u00ed\u00a1\u0082\u00ed\u00be\u00b7";

    private Kanji() {
    }

    public interface Work {
        long all(long x);
    }

    public static final class Face01 implements Work {
        static volatile Object kept;

        @Override
        public long all(long x) {
            return yoshi1(x);
        }

        static long yoshi1(long x) {
            long sum = x;
            for (int i = 0; i < 10_000; i++)
                sum = sum * 31 + (sum >>> 7);
            for (int i = 0; i < 200; i++)
                kept = new Face01();
            return sum;
        }
    }

    public static void main(String[] args) throws Exception {
        String renamed = Copies.template(Face01.class).replace(CLASS, EMOJI).replace(METHOD, KANJI);
        Work work = Copies.make(renamed, Work.class);
        Thread thread = new Thread(() -> {
            for (long sum = 1; sum != 0;)
                sum = work.all(sum | 1);
        }, "\ud842\udfb7 \ud83d\ude00");
        thread.start();
        Workload.ready();
        thread.join();
    }
}
