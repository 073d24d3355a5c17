// SPDX-License-Identifier: MIT
package workload;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** Classes made at run time, each a copy of one whose names were replaced in its class file, by a loader of its own. */
final class Copies {
    private Copies() {
    }

    private static final class Loader extends ClassLoader {
        Class<?> make(byte[] code) {
            return defineClass(null, code, 0, code.length);
        }
    }

    /** The class file, its bytes as characters. */
    static String template(Class<?> of) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        String name = of.getName();
        try (InputStream in = of.getResourceAsStream(name.substring(name.lastIndexOf('.') + 1) + ".class")) {
            for (int next = in.read(); next >= 0; next = in.read())
                bytes.write(next);
        }
        return bytes.toString("ISO-8859-1");
    }

    static <T> T make(String code, Class<T> type) throws ReflectiveOperationException {
        byte[] bytes = code.getBytes(StandardCharsets.ISO_8859_1);
        return type.cast(new Loader().make(bytes).getDeclaredConstructor().newInstance());
    }
}
