// SPDX-License-Identifier: MIT
package workload;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** A class, a method of 4 kB and threads whose names would steer a terminal, break a line or be markup. Runs on. */
public final class Names {
    private static final String CLASS = "Copy0000000000", METHOD = "called";
    /** What the JVM takes in names of classes, and of methods but for the markup: no ". ; [ /". */
    private static final String EVIL = "\u001bc\u0007\u009b\u202e\r\n\"\\'";

    private Names() {
    }

    public interface Work {
        long all(long x);
    }

    public static final class Copy0000000000 implements Work {
        @Override
        public long all(long x) {
            return called(x);
        }

        static long called(long x) {
            long sum = x;
            for (int i = 0; i < 200_000_000; i++)
                sum = sum * 31 + (sum >>> 7);
            return sum;
        }
    }

    private static String utf8(String text) {
        return new String(text.getBytes(StandardCharsets.UTF_8), StandardCharsets.ISO_8859_1);
    }

    /** A CONSTANT_Utf8 of the class file. */
    private static String constant(String bytes) {
        return "\u0001" + (char) (bytes.length() >> 8) + (char) (bytes.length() & 255) + bytes;
    }

    private static Work make() throws IOException, ReflectiveOperationException {
        StringBuilder method = new StringBuilder(utf8(EVIL));
        while (method.length() < 4096)
            method.append('m');
        String name = "<b>" + EVIL.substring(0, 4); // as many bytes as CLASS
        String renamed = Copies.template(Copy0000000000.class)
            .replace(CLASS, (utf8(name) + CLASS).substring(0, CLASS.length()))
            .replace(constant(METHOD), constant(method.toString()));
        return Copies.make(renamed, Work.class);
    }

    public static void main(String[] args) throws Exception {
        Work work = make();
        Thread thread = new Thread(() -> {
            for (long sum = 1; sum != 0;)
                sum = work.all(sum | 1);
        }, "[2J</script>;" + EVIL + "\ud800");
        thread.start();
        Workload.ready();
        thread.join();
    }
}
