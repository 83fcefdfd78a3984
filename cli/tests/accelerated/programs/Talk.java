// SPDX-License-Identifier: Apache-2.0 OR MIT
// An echo server, with streams or with channels and a selector, and a client that verifies the
// echo.

import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Random;

class Talk {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[2]);
        if (arguments[0].equals("ask")) {
            ask(port);
        } else if (arguments[1].equals("sockets")) {
            serveSockets(port);
        } else {
            serveChannels(port);
        }
    }

    static void serveSockets(int port) throws Exception {
        ServerSocket listener = new ServerSocket(port, 64, InetAddress.getLoopbackAddress());
        while (true) {
            Socket socket = listener.accept();
            Thread thread = new Thread(() -> {
                try (socket) {
                    socket.getInputStream().transferTo(socket.getOutputStream());
                } catch (Exception failure) {
                    failure.printStackTrace();
                }
            });
            thread.start();
        }
    }

    static void serveChannels(int port) throws Exception {
        Selector selector = Selector.open();
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 64);
        listener.configureBlocking(false);
        listener.register(selector, SelectionKey.OP_ACCEPT);
        while (true) {
            selector.select();
            for (Iterator<SelectionKey> it = selector.selectedKeys().iterator(); it.hasNext();) {
                SelectionKey key = it.next();
                it.remove();
                if (key.isAcceptable()) {
                    SocketChannel channel = listener.accept();
                    channel.configureBlocking(false);
                    channel.register(selector, SelectionKey.OP_READ, ByteBuffer.allocate(50_000));
                } else {
                    echo(key);
                }
            }
        }
    }

    static void echo(SelectionKey key) throws Exception {
        SocketChannel channel = (SocketChannel) key.channel();
        ByteBuffer buffer = (ByteBuffer) key.attachment();
        if (key.isReadable()) {
            int count = channel.read(buffer);
            if (count == 0) {
                throw new IllegalStateException("readable, but there is nothing");
            }
            if (count < 0) {
                channel.close();
                return;
            }
        }
        buffer.flip();
        channel.write(buffer);
        buffer.compact();
        int reads = buffer.hasRemaining() ? SelectionKey.OP_READ : 0;
        key.interestOps(reads | (buffer.position() > 0 ? SelectionKey.OP_WRITE : 0));
    }

    static void ask(int port) throws Exception {
        Thread[] threads = new Thread[4];
        for (int number = 0; number < threads.length; number++) {
            long seed = number;
            threads[number] = new Thread(() -> {
                try {
                    talk(port, new Random(seed));
                } catch (Exception failure) {
                    failure.printStackTrace();
                    System.exit(1);
                }
            });
            threads[number].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    static void talk(int port, Random random) throws Exception {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(60_000);
            InputStream input = socket.getInputStream();
            for (int round = 0; round < 20; round++) {
                for (int size : new int[] {1, 100, 4096, 60_000}) {
                    byte[] sent = new byte[size];
                    random.nextBytes(sent);
                    socket.getOutputStream().write(sent);
                    byte[] got = input.readNBytes(size);
                    if (!Arrays.equals(sent, got)) {
                        throw new IllegalStateException(size + " bytes have changed");
                    }
                }
            }
            socket.shutdownOutput();
            if (input.read() != -1) {
                throw new IllegalStateException("the end comes back");
            }
        }
    }
}
