// SPDX-License-Identifier: MIT
package workload;

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;

/**
 * Relay IN OUT PORT OTHER MILLISECONDS: wakes other processes and is woken by them, then ends. Reads the pipe IN and
 * writes to the pipe OUT, sends datagrams to OTHER and receives those for PORT of the loopback device, and two of its
 * threads contend for a lock. Each byte that is read, and each turn of the lock, runs a class of its own.
 */
public final class Relay {
    private static final String NUMBER = "0000000000";
    private static final Object lock = new Object();
    private static String template;
    private static int made;
    static volatile long sink;

    private Relay() {
    }

    public interface Step {
        void write(OutputStream out) throws Exception;

        void hold(Object lock) throws Exception;
    }

    public static final class Step0000000000 implements Step {
        @Override
        public void write(OutputStream out) throws Exception {
            write0000000000(out);
        }

        static void write0000000000(OutputStream out) throws Exception {
            Thread.sleep(1);
            out.write(1);
        }

        @Override
        public void hold(Object lock) throws Exception {
            synchronized (lock) {
                Thread.sleep(2);
            }
        }
    }

    private interface Body {
        void run() throws Exception;
    }

    private static void forever(String name, Body body) {
        Thread thread = new Thread(() -> {
            try {
                for (;;)
                    body.run();
            } catch (Exception e) {
                Workload.say("WRONG " + name + ": " + e);
                Runtime.getRuntime().halt(3);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    private static synchronized Step next() throws ReflectiveOperationException {
        return Copies.make(template.replace(NUMBER, String.format("%010d", ++made)), Step.class);
    }

    public static void main(String[] args) throws Exception {
        template = Copies.template(Step0000000000.class);
        InputStream in = new FileInputStream(args[0]);
        OutputStream out = new FileOutputStream(args[1]);
        DatagramSocket socket = new DatagramSocket(Integer.parseInt(args[2]), InetAddress.getLoopbackAddress());
        DatagramPacket sent = new DatagramPacket(new byte[1], 1, InetAddress.getLoopbackAddress(),
            Integer.parseInt(args[3]));
        DatagramPacket got = new DatagramPacket(new byte[1], 1);
        forever("reads", () -> sink += in.read());
        forever("writes", () -> next().write(out));
        forever("receives", () -> socket.receive(got));
        forever("sends", () -> {
            Thread.sleep(1);
            socket.send(sent);
        });
        forever("holds-1", () -> next().hold(lock));
        forever("holds-2", () -> next().hold(lock));
        Workload.ready();
        Thread.sleep(Long.parseLong(args[4]));
        Runtime.getRuntime().halt(0);
    }
}
