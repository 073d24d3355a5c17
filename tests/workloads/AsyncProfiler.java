// SPDX-License-Identifier: MIT
package one.profiler;

// Native methods and public ones as async-profiler 2.9 has them, which Flink brings along. Written for this test.
public final class AsyncProfiler {
    private static AsyncProfiler instance;

    private AsyncProfiler() {
    }

    // The library may be there already, by -agentpath or by an attach. -Dlibrary=PATH is a copy to use in any case.
    public static synchronized AsyncProfiler getInstance() {
        if (instance != null)
            return instance;
        AsyncProfiler created = new AsyncProfiler();
        try {
            if (System.getProperty("library") != null)
                System.load(System.getProperty("library"));
            created.getVersion();
        } catch (UnsatisfiedLinkError e) {
            System.loadLibrary("asyncProfiler");
        }
        instance = created;
        return created;
    }

    public void start(String event, long interval) {
        start0(event, interval, true);
    }

    public void resume(String event, long interval) {
        start0(event, interval, false);
    }

    public void stop() {
        stop0();
    }

    public String getVersion() {
        try {
            return execute0("version");
        } catch (java.io.IOException e) {
            throw new IllegalStateException(e);
        }
    }

    public String execute(String command) throws java.io.IOException {
        return execute0(command);
    }

    public void addThread(Thread thread) {
        filterThread0(thread == Thread.currentThread() ? null : thread, true);
    }

    public void removeThread(Thread thread) {
        filterThread0(thread == Thread.currentThread() ? null : thread, false);
    }

    public native long getSamples();

    private native void start0(String event, long interval, boolean reset);

    private native void stop0();

    private native String execute0(String command) throws java.io.IOException;

    private native void filterThread0(Thread thread, boolean enable);
}
