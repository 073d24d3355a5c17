// SPDX-License-Identifier: MIT
package workload;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;

/**
 * A class is redefined all the time. Version N of it has its lines at 100 * N and more, and calls even() or odd() as N
 * is: a stack in which a line is not of its method, or in which the line of outer() and its callee contradict each
 * other, is wrong. It runs on. Says "LINES METHOD LINE...", of version 0. A version runs for MILLISECONDS (20).
 * With the argument "jar FILE" it writes the jar for -javaagent and ends.
 */
public final class Redefined {
    private static final int VERSIONS = 600, AT_ONCE = 10; // versions between two collections
    static volatile long sink;
    static Instrumentation instrumentation;

    private Redefined() {
    }

    static final class Work {
        static long outer(long x) {
            int version = 0x1234;
            if ((version & 1) == 0)
                return even(x) + 1;
            return odd(x) + 1;
        }

        static long even(long x) {
            long sum = x;
            for (int i = 0; i < 20_000; i++)
                sum = sum * 31 + (sum >>> 7);
            return sum;
        }

        static long odd(long x) {
            long sum = x;
            for (int i = 0; i < 20_000; i++)
                sum = sum * 33 + (sum >>> 9);
            return sum;
        }
    }

    /** The places of the line numbers in a class file. */
    static final class Lines {
        private final DataInputStream in;
        private final ByteArrayInputStream bytes;
        private final int length;
        private final String[] texts;
        final StringBuilder said = new StringBuilder();
        final int[] places = new int[64];
        int count;

        Lines(byte[] code) throws IOException {
            bytes = new ByteArrayInputStream(code);
            in = new DataInputStream(bytes);
            length = code.length;
            in.skipBytes(8);
            texts = new String[in.readUnsignedShort()];
            for (int i = 1; i < texts.length; i++)
                i += constant(i);
            in.skipBytes(6);
            in.skipBytes(2 * in.readUnsignedShort());
            members(false);
            members(true);
        }

        /** Returns how many more indices it takes. */
        private int constant(int index) throws IOException {
            int tag = in.readUnsignedByte();
            if (tag == 1)
                texts[index] = in.readUTF();
            else
                in.skipBytes(tag == 5 || tag == 6 ? 8 : tag == 7 || tag == 8 || tag == 16 ? 2 : tag == 15 ? 3 : 4);
            return tag == 5 || tag == 6 ? 1 : 0;
        }

        private void members(boolean areMethods) throws IOException {
            for (int n = in.readUnsignedShort(); n > 0; n--) {
                in.skipBytes(2);
                String name = texts[in.readUnsignedShort()];
                in.skipBytes(2);
                if (areMethods)
                    said.append("LINES ").append(name);
                attributes();
                if (areMethods)
                    said.append('\n');
            }
        }

        private void attributes() throws IOException {
            for (int n = in.readUnsignedShort(); n > 0; n--) {
                String name = texts[in.readUnsignedShort()];
                int size = in.readInt();
                if ("Code".equals(name)) {
                    in.skipBytes(4);
                    in.skipBytes(in.readInt());
                    in.skipBytes(8 * in.readUnsignedShort());
                    attributes();
                } else if ("LineNumberTable".equals(name)) {
                    table();
                } else {
                    in.skipBytes(size);
                }
            }
        }

        private void table() throws IOException {
            for (int n = in.readUnsignedShort(); n > 0; n--) {
                in.skipBytes(2);
                places[count++] = length - bytes.available();
                said.append(' ').append(in.readUnsignedShort());
            }
        }
    }

    private static byte[] version(byte[] template, Lines lines, int number) {
        byte[] code = template.clone();
        for (int i = 0; i < lines.count; i++)
            put(code, lines.places[i], get(code, lines.places[i]) + 100 * (number % VERSIONS));
        for (int i = 0; i + 2 < code.length; i++)
            if (code[i] == 0x11 && get(code, i + 1) == 0x1234) // sipush
                put(code, i + 1, number % VERSIONS);
        return code;
    }

    private static int get(byte[] code, int at) {
        return (code[at] & 0xff) << 8 | (code[at + 1] & 0xff);
    }

    private static void put(byte[] code, int at, int value) {
        code[at] = (byte) (value >> 8);
        code[at + 1] = (byte) value;
    }

    private static void writeJar(String file) throws IOException {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Premain-Class", "workload.Redefined");
        manifest.getMainAttributes().putValue("Can-Redefine-Classes", "true");
        new JarOutputStream(new FileOutputStream(file), manifest).close();
    }

    public static void premain(String argument, Instrumentation of) {
        instrumentation = of;
    }

    private static void redefine(byte[] template, Lines lines, long milliseconds) {
        try {
            for (int i = 1;; i++) {
                Thread.sleep(milliseconds);
                instrumentation.redefineClasses(new ClassDefinition(Work.class, version(template, lines, i)));
                if (i % AT_ONCE == 0)
                    System.gc();
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 1) {
            writeJar(args[1]);
            return;
        }
        long milliseconds = Workload.argument(args, 0, 20);
        byte[] template = Copies.template(Work.class).getBytes(StandardCharsets.ISO_8859_1);
        Lines lines = new Lines(template);
        sink = Work.outer(1); // version 0x1234 has the lines of version 0: it runs only here
        instrumentation.redefineClasses(new ClassDefinition(Work.class, version(template, lines, 0)));
        System.out.print(lines.said);
        new Thread(() -> redefine(template, lines, milliseconds), "redefines").start();
        Workload.ready();
        for (;;)
            sink += Work.outer(sink);
    }
}
