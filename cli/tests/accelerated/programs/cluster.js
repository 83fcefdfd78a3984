// SPDX-License-Identifier: Apache-2.0 OR MIT
// Echo servers in workers that receive connections from another process: of a cluster, by a message
// within a conversation, or as standard streams.
'use strict';
const childProcess = require('child_process');
const cluster = require('cluster');
const fs = require('fs');
const net = require('net');

const [kind] = process.argv.slice(2);
// Bytes that the client sends at a time, and whose echo it waits for.
const ROUND = 64;

function announce(port) {
  fs.writeFileSync('port.new', String(port));
  fs.renameSync('port.new', 'port');
}

function giveBack(socket) {
  socket.on('error', () => socket.destroy());
  socket.pipe(socket);
}

function serveAsCluster() {
  if (!cluster.isPrimary) {
    net.createServer(giveBack).listen(0, '127.0.0.1');
    return;
  }
  let listening = 0;
  cluster.on('listening', (worker, address) => {
    listening++;
    if (listening === 3) announce(address.port);
  });
  for (let number = 0; number < 3; number++) cluster.fork();
}

// Later data is for another process. To pause a socket is not enough: data that is read until the
// socket is closed here would be lost.
function stopReading(socket) {
  socket.pause();
  socket._handle.readStop();
}

// Echoes round by round until the client reports that the connection is accelerated, and then
// passes on the socket and a round without its echo.
function giveBackUntilLeft(socket, handOn) {
  let round = Buffer.alloc(0);
  const take = (part) => {
    round = Buffer.concat([round, part]);
    if (round.length < ROUND) return;
    if (fs.existsSync('left')) {
      socket.removeListener('data', take);
      stopReading(socket);
      handOn(socket, round);
      return;
    }
    socket.write(round);
    round = Buffer.alloc(0);
  };
  socket.on('data', take);
}

function serve(handOn) {
  const server = net.createServer((socket) => giveBackUntilLeft(socket, handOn));
  server.listen(0, '127.0.0.1', () => announce(server.address().port));
}

function serveBySending() {
  const worker = childProcess.fork(__filename, ['worker']);
  serve((socket, round) => worker.send({ round: round.toString('base64') }, socket));
}

function work() {
  process.on('message', ({ round }, socket) => {
    socket.write(Buffer.from(round, 'base64'));
    giveBack(socket);
    socket.resume();
  });
}

function serveAsStreams() {
  serve((socket, round) => {
    socket.write(round, () => {
      childProcess.spawn('cat', { stdio: [socket, socket, 'inherit'] });
      socket.destroy();
    });
  });
}

const kinds = { cluster: serveAsCluster, send: serveBySending, worker: work, stdio: serveAsStreams };
kinds[kind]();
