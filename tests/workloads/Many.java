// SPDX-License-Identifier: MIT
package workload;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Thousands of methods: classes made at run time, each a copy of one under another name. Arguments: how many classes,
 * of 11 methods each; for how many seconds they are called; how many of them are called in turn, all without it.
 */
public final class Many {
    private Many() {
    }

    public interface Work {
        int all(int x);
    }

    /** What the copies are made of. */
    public static final class Copy00000 implements Work {
        @Override
        public int all(int x) {
            return a(x) + b(x) + c(x) + d(x) + e(x) + f(x) + g(x) + h(x);
        }

        static int a(int x) { return turn(x, 3); }
        static int b(int x) { return turn(x, 5); }
        static int c(int x) { return turn(x, 7); }
        static int d(int x) { return turn(x, 11); }
        static int e(int x) { return turn(x, 13); }
        static int f(int x) { return turn(x, 17); }
        static int g(int x) { return turn(x, 19); }
        static int h(int x) { return turn(x, 23); }

        private static int turn(int x, int by) {
            int sum = x;
            for (int i = 0; i < 40; i++)
                sum = sum * by + (sum >>> 7);
            return sum;
        }
    }

    static final class Loader extends ClassLoader {
        private final byte[] template;

        Loader(byte[] template) {
            super(Many.class.getClassLoader());
            this.template = template;
        }

        Work make(int number) throws ReflectiveOperationException {
            String from = "Copy00000", to = String.format("Copy%05d", number);
            byte[] code = new String(template, StandardCharsets.ISO_8859_1).replace(from, to)
                .getBytes(StandardCharsets.ISO_8859_1);
            return (Work) defineClass(null, code, 0, code.length).getDeclaredConstructor().newInstance();
        }
    }

    static byte[] template() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (InputStream in = Many.class.getResourceAsStream("Many$Copy00000.class")) {
            for (int b = in.read(); b >= 0; b = in.read())
                bytes.write(b);
        }
        return bytes.toByteArray();
    }

    public static void main(String[] args) throws Exception {
        Work[] work = new Work[(int) Workload.argument(args, 0, 500)];
        Loader loader = new Loader(template());
        int sum = 0;
        for (int i = 0; i < work.length; i++)
            work[i] = loader.make(i + 1);
        work = Arrays.copyOf(work, (int) Workload.argument(args, 2, work.length));
        for (Work each : work) // under -Xcomp all are compiled when it says READY
            sum += each.all(sum);
        Workload.ready();
        long end = System.nanoTime() + Workload.argument(args, 1, 60) * 1000000000L;
        while (System.nanoTime() < end)
            for (Work each : work)
                sum += each.all(sum);
        Workload.say("SUM " + sum);
        Workload.done();
    }
}
