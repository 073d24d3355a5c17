// SPDX-License-Identifier: MIT
package one.profiler;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;

/**
 * Profiles the JVM that it is in. The recording is made by duet, which the library starts when it is needed; all of the
 * JVM's agents, threads and asprof share one recording.
 *
 * <p>A command that is not understood throws IllegalArgumentException; one that is refused or fails,
 * IllegalStateException; a file that cannot be written, IOException.
 */
public class AsyncProfiler implements AsyncProfilerMXBean {
    private static final String LIBRARY = "libasyncProfiler.so";

    private static AsyncProfiler instance;

    private AsyncProfiler() {
    }

    public static AsyncProfiler getInstance() {
        return getInstance(null);
    }

    /**
     * Loads the library: {@code path}; else, if no agent has loaded it, the one of the property
     * one.profiler.libraryPath; else the one in this jar; else the JVM's library path is searched.
     */
    public static synchronized AsyncProfiler getInstance(String path) {
        if (instance != null)
            return instance;
        AsyncProfiler profiler = new AsyncProfiler();
        if (path != null)
            System.load(path);
        else if (!profiler.isLoaded())
            load();
        instance = profiler;
        return profiler;
    }

    private boolean isLoaded() {
        try {
            getVersion();
            return true;
        } catch (UnsatisfiedLinkError e) {
            return false;
        }
    }

    private static void load() {
        String path = System.getProperty("one.profiler.libraryPath", "");
        if (!path.isEmpty())
            System.load(new File(path).getAbsolutePath());
        else if (!loadFromJar())
            System.loadLibrary("asyncProfiler");
    }

    private static String platform() {
        String arch = System.getProperty("os.arch");
        return arch.equals("aarch64") ? "linux-arm64" : "linux-x64";
    }

    // The file is not needed any more once it is mapped.
    private static boolean loadFromJar() {
        String folder = System.getProperty("one.profiler.extractPath", "");
        try (InputStream in = AsyncProfiler.class.getResourceAsStream("/" + platform() + "/" + LIBRARY)) {
            if (in == null)
                return false;
            Path file = folder.isEmpty() ? Files.createTempFile("libasyncProfiler-", ".so")
                : Files.createTempFile(Paths.get(folder), "libasyncProfiler-", ".so");
            try {
                Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
                System.load(file.toAbsolutePath().toString());
            } finally {
                Files.deleteIfExists(file);
            }
            return true;
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static <T> T notNull(T value, String what) {
        if (value == null)
            throw new NullPointerException(what);
        return value;
    }

    @Override
    public void start(String event, long interval) {
        start0(notNull(event, "event"), interval, true);
    }

    @Override
    public void resume(String event, long interval) {
        start0(notNull(event, "event"), interval, false);
    }

    @Override
    public void stop() {
        stop0();
    }

    @Override
    public native long getSamples();

    @Override
    public String getVersion() {
        return report("version");
    }

    @Override
    public String execute(String command) throws IOException {
        return execute0(notNull(command, "command"));
    }

    // A report that goes to no file.
    private String report(String command) {
        try {
            return execute0(command);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String word(Counter counter) {
        return counter == Counter.SAMPLES ? "samples" : "total";
    }

    @Override
    public String dumpCollapsed(Counter counter) {
        return report("collapsed," + word(counter));
    }

    @Override
    public String dumpTraces(int rows) {
        return report(rows == 0 ? "traces" : "traces=" + rows);
    }

    @Override
    public String dumpFlat(int rows) {
        return report(rows == 0 ? "flat" : "flat=" + rows);
    }

    @Override
    public byte[] dumpOtlp(Counter counter) {
        try {
            return execute1("otlp," + word(counter));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Does nothing: duet samples all threads. */
    public void addThread(Thread thread) {
        filterThread0(thread, true);
    }

    /** Does nothing: duet samples all threads. */
    public void removeThread(Thread thread) {
        filterThread0(thread, false);
    }

    private native void start0(String event, long interval, boolean reset);

    private native void stop0();

    private native String execute0(String command) throws IOException;

    private native byte[] execute1(String command) throws IOException;

    private native void filterThread0(Thread thread, boolean enable);
}
