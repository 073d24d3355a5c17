// SPDX-License-Identifier: MIT
package workload;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * Inside COLLECTIONS CLASSES CALLS: makes the JVM itself work a known number of times: collect garbage, load a class by
 * a class loader of its own, and run a method so often that the JVM compiles it.
 */
public final class Inside {
    static final class Loaded {
    }

    static final class Loader extends ClassLoader {
        Loader() {
            super(Inside.class.getClassLoader());
        }

        Class<?> define(byte[] file) {
            return defineClass(null, file, 0, file.length);
        }
    }

    static Object kept;
    static long sum;

    static byte[] fileOfLoaded() throws IOException {
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        try (InputStream in = Inside.class.getResourceAsStream("Inside$Loaded.class")) {
            for (int b = in.read(); b >= 0; b = in.read())
                file.write(b);
        }
        return file.toByteArray();
    }

    static void collect(int times) {
        for (int i = 0; i < times; i++)
            System.gc();
    }

    static void load(byte[] file, int times) {
        for (int i = 0; i < times; i++)
            kept = new Loader().define(file);
    }

    static long hot(long i) {
        return i * 31 % 1009;
    }

    static void call(int times) {
        for (int i = 0; i < times; i++)
            sum += hot(i);
    }

    public static void main(String[] args) throws Exception {
        byte[] file = fileOfLoaded();
        Workload.ready();
        collect((int) Workload.argument(args, 0, 20));
        load(file, (int) Workload.argument(args, 1, 50));
        call((int) Workload.argument(args, 2, 1_000_000));
        Thread.sleep(500); /* for a compiler that still works */
        Workload.say("DONE_BY " + sum);
        Workload.done();
    }
}
