// SPDX-License-Identifier: Apache-2.0 OR MIT
// An HTTP echo server, and a client that verifies the echo.
'use strict';
const crypto = require('crypto');
const http = require('http');

const [role, , port] = process.argv.slice(2);
const sizes = [0, 1, 1000, 65536, 300000, 1 << 20];

function serve() {
  http.createServer((request, response) => request.pipe(response)).listen(port, '127.0.0.1');
}

function post(agent, body) {
  return new Promise((resolve, reject) => {
    const options = { agent, port, host: '127.0.0.1', method: 'POST', timeout: 60000 };
    const request = http.request(options, (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('end', () => resolve(Buffer.concat(parts)));
    });
    request.on('error', reject);
    request.end(body);
  });
}

async function ask() {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let round = 0; round < 4; round++) {
    for (const size of sizes) {
      const sent = crypto.randomBytes(size);
      const got = await post(agent, sent);
      if (!got.equals(sent)) throw new Error(`${size} bytes have changed`);
    }
  }
  agent.destroy();
}

if (role === 'serve') {
  serve();
} else {
  Promise.all([ask(), ask(), ask(), ask()]).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}
