// SPDX-License-Identifier: MIT
package workload;

import java.net.URI;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Everything MOST: links at most so many classes of the JDK's module java.base (JDK 9+), and says "LINKED n m": how
 * many it has linked, and how many of them the JVM has refused to verify.
 */
public final class Everything {
    static List<String> classes() throws Exception {
        Path modules = FileSystems.getFileSystem(URI.create("jrt:/")).getPath("modules/java.base");
        try (Stream<Path> files = Files.walk(modules)) {
            return files.map(file -> modules.relativize(file).toString())
                .filter(name -> name.endsWith(".class") && !name.equals("module-info.class"))
                .map(name -> name.substring(0, name.length() - 6).replace('/', '.'))
                .sorted().collect(Collectors.toCollection(ArrayList::new));
        }
    }

    public static void main(String[] args) throws Exception {
        long most = Workload.argument(args, 0, Long.MAX_VALUE), linked = 0, refused = 0;
        Workload.ready();
        for (String name : classes()) {
            if (linked + refused >= most)
                break;
            try {
                Class<?> type = Class.forName(name, false, null);
                java.lang.invoke.MethodHandles.lookup();
                type.getDeclaredMethods(); /* links it */
                linked++;
            } catch (VerifyError | ClassFormatError | IncompatibleClassChangeError error) {
                Workload.say("REFUSED " + name + ": " + error);
                refused++;
            } catch (Throwable other) {
                linked++; /* a class that needs another one, which this JDK lacks */
            }
        }
        Workload.say("LINKED " + linked + " " + refused);
        Workload.done();
    }
}
