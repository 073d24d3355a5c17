// SPDX-License-Identifier: MIT
package workload;

import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

/**
 * Sleeps SECONDS: threads that wait in known methods. Says "NAME ns" for each, which has the name of its method: the
 * time that it had no CPU.
 */
public final class Sleeps {
    interface Wait {
        void once(Random random) throws Exception;
    }

    static final Object lock = new Object();
    static volatile long endNs;
    static long held;
    static InputStream in;

    static int someMs(Random random) {
        return 1 + random.nextInt(random.nextInt(8) == 0 ? 25 : 3);
    }

    static void inSleep(Random random) throws Exception {
        Thread.sleep(someMs(random));
    }

    static void inPark(Random random) {
        LockSupport.parkNanos(1_000_000L * someMs(random));
    }

    static void inWait(Random random) throws Exception {
        Object mine = new Object();
        synchronized (mine) {
            mine.wait(someMs(random));
        }
    }

    static void inMonitor(Random random) {
        synchronized (lock) {
            held++;
        }
    }

    static void inSocket(Random random) throws Exception {
        if (in.read() < 0)
            throw new IllegalStateException();
    }

    static Thread start(String name, Wait wait) {
        Thread thread = new Thread(() -> waits(name, wait), name);
        thread.start();
        return thread;
    }

    static void waits(String name, Wait wait) {
        Random random = new Random(name.hashCode());
        long began = System.nanoTime(), used;
        try {
            while (System.nanoTime() < endNs)
                wait.once(random);
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        used = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        Workload.say(name + " " + (System.nanoTime() - began - used));
    }

    /** Holds the lock and lets the socket's reader wait. */
    static void endsWaits(Socket socket) {
        Random random = new Random(7);
        try {
            for (;;) {
                synchronized (lock) {
                    Thread.sleep(someMs(random));
                }
                socket.getOutputStream().write(1);
                Thread.sleep(1);
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket out = new Socket(server.getInetAddress(), server.getLocalPort());
        in = server.accept().getInputStream();
        ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        Workload.ready();
        endNs = System.nanoTime() + 1_000_000_000L * Long.parseLong(args[0]);
        Thread helper = new Thread(() -> endsWaits(out), "endsWaits");
        helper.setDaemon(true);
        helper.start();
        List<Thread> threads = new ArrayList<>();
        threads.add(start("inSleep", Sleeps::inSleep));
        threads.add(start("inPark", Sleeps::inPark));
        threads.add(start("inWait", Sleeps::inWait));
        threads.add(start("inMonitor", Sleeps::inMonitor));
        threads.add(start("inSocket", Sleeps::inSocket));
        for (Thread thread : threads)
            thread.join();
        Workload.done();
    }
}
