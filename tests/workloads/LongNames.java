// SPDX-License-Identifier: MIT
package workload;

/** LongNames: three threads with names longer than 15 bytes, one of which is renamed; garbage, so that objects move. */
public final class LongNames {
    static volatile long sink;
    static volatile Object garbage;

    static void spin() {
        for (;;) {
            sink += TwoBusy.spin(100_000);
        }
    }

    static Thread start(String name) {
        Thread thread = new Thread(LongNames::spin, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws Exception {
        start("a-latin-name-that-is-longer-than-fifteen-bytes-\u00e9");
        start("ein-\u540d\u524d-that-is-longer-than-fifteen-\ud83d\ude00-bytes");
        Thread renamed = start("it-was-called-this-before-it-was-renamed");
        Workload.ready();
        for (int i = 0; ; i++) {
            garbage = new byte[100_000];
            if (i == 50)
                renamed.setName("it-is-called-this-after-it-was-renamed");
            Thread.sleep(5);
        }
    }
}
