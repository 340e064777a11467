// The way out of a sandbox whose network is ruled: every connection is a tunnel through the host's proxy, which knows by the
// token in `HTTP_PROXY` who asks. Past it nothing connects, whatever a plugin does to what stands here; so this is no
// guard, it makes programs work that know nothing of a proxy.

import { Buffer } from "node:buffer";
import dns from "node:dns";
import { createRequire, syncBuiltinESMExports } from "node:module";
import net from "node:net";
import { Duplex } from "node:stream";
import tls from "node:tls";

const HEAD = 32 * 1024;
const END = "\r\n\r\n";

function proxyOf(address) {
  const url = new URL(address);
  const login = Buffer.from(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`).toString("base64");
  return { href: address, host: url.hostname, port: Number(url.port), login };
}

// What the proxy answered, as the error of a connection: its words say who may not go where, and what to do.
function refused(line, host, port) {
  const words = /^HTTP\/\d\.\d (\d+) ?(.*)$/.exec(line);
  const message = words?.[2] || `the proxy answered ${JSON.stringify(line.slice(0, 100))}`;
  const code = words?.[1] === "502" ? "ENOTFOUND" : "EACCES";
  return Object.assign(new Error(message), { code, syscall: "connect", address: host, port });
}

// `connect` as it is called: (options), (port, host), (path), or what `net.connect` makes of these.
function wanted(args) {
  let [first, second] = Array.isArray(args[0]) ? args[0] : args;
  if (typeof first === "object" && first !== null) return first;
  if (typeof first === "string" && !/^\d+$/.test(first)) return { path: first };
  return { port: first, host: typeof second === "string" ? second : undefined };
}

// The socket connects to the proxy, asks for the tunnel, and says that it is connected when it has it. What is written
// meanwhile waits, as it does while a socket connects.
function tunnel(socket, proxy, host, port) {
  const { emit, push } = socket;
  let answer = "";
  const release = () => {
    socket.emit = emit;
    socket.push = push;
  };
  const over = () => {
    const end = answer.indexOf(END);
    if (end < 0 && answer.length < HEAD) return true;
    release();
    const line = answer.slice(0, answer.indexOf("\r\n"));
    if (!/^HTTP\/\d\.\d 200 /.test(line)) {
      socket.destroy(refused(line, host, port));
      return false;
    }
    socket.connecting = false;
    socket.emit("connect");
    socket.emit("ready");
    const rest = answer.slice(end + END.length);
    return rest === "" || socket.push(Buffer.from(rest, "latin1"));
  };
  socket.push = (chunk) => {
    if (chunk === null) {
      release();
      socket.destroy(refused("", host, port));
      return false;
    }
    answer += Buffer.from(chunk).toString("latin1");
    return over();
  };
  socket.emit = (name, ...args) => {
    if (name === "ready" || name === "lookup" || name.startsWith?.("connectionAttempt")) return true;
    if (name !== "connect") return emit.call(socket, name, ...args);
    const place = net.isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
    const head = `CONNECT ${place} HTTP/1.1\r\nhost: ${place}\r\nproxy-authorization: Basic ${proxy.login}${END}`;
    socket.connecting = false;
    socket._write(Buffer.from(head), "buffer", (error) => {
      if (error) socket.destroy(error);
    });
    socket._read(HEAD);
    socket.connecting = true;
    return true;
  };
}

// Node's TLS takes a socket's handle as soon as it has the socket, and with it the proxy's answer. A stream has no handle.
function withoutHandle(socket) {
  const stream = new Duplex({
    read: () => socket.resume(),
    write: (chunk, encoding, done) => socket.write(chunk, encoding, done),
    final: (done) => socket.end(done),
    destroy(error, done) {
      socket.destroy(error ?? undefined);
      done(error);
    },
  });
  socket.on("data", (chunk) => stream.push(chunk) || socket.pause());
  socket.on("end", () => stream.push(null));
  socket.on("error", (error) => stream.destroy(error));
  socket.on("close", () => stream.destroy());
  return stream;
}

function wrapSockets(proxy) {
  const { connect } = net.Socket.prototype;
  net.Socket.prototype.connect = function (...args) {
    const options = wanted(args);
    const { path, port } = options;
    const host = String(options.host || "localhost").replace(/^\[(.*)\]$/, "$1");
    const through = !path && options.fd === undefined && !(this instanceof tls.TLSSocket) && Number(port) > 0;
    if (!through || (Number(port) === proxy.port && host === proxy.host)) return connect.apply(this, args);
    const listener = args.findLast((arg) => typeof arg === "function") ?? args[0]?.findLast?.((arg) => typeof arg === "function");
    const { lookup, family, localAddress, localPort, ...rest } = options;
    tunnel(this, proxy, host, Number(port));
    return connect.call(this, { ...rest, autoSelectFamily: false, host: proxy.host, port: proxy.port }, ...(listener ? [listener] : []));
  };
  const secure = tls.connect;
  const over = function (...args) {
    const options = typeof args[0] === "object" && args[0] !== null ? args[0] : { ...wanted(args), ...args.find((arg) => typeof arg === "object" && arg !== null) };
    const listener = args.findLast((arg) => typeof arg === "function");
    if (options.socket || options.path || !(Number(options.port) > 0)) return secure.apply(tls, args);
    const host = String(options.host || "localhost").replace(/^\[(.*)\]$/, "$1");
    const socket = net.connect({ host, port: Number(options.port) });
    const named = options.servername ?? (net.isIP(host) ? "" : host);
    const { port, ...rest } = options;
    const under = globalThis.Bun ? socket : withoutHandle(socket);
    const secured = secure({ ...rest, host, servername: named, socket: under }, listener);
    socket.once("error", (error) => secured.destroy(error));
    return secured;
  };
  tls.connect = over;
}

function wrapWebSocket(proxy) {
  const { WebSocket } = globalThis;
  globalThis.WebSocket = new Proxy(WebSocket, {
    construct(target, [url, options], self) {
      const given = typeof options === "string" || Array.isArray(options) ? { protocols: options } : options;
      return Reflect.construct(target, [url, { proxy: proxy.href, ...given }], self);
    },
  });
}

// `Bun.connect` to an address is made by the system. A name it would look up itself, which nobody in a sandbox can: the proxy does.
function wrapConnect(proxy) {
  const { connect } = Bun;
  Bun.connect = (options) => {
    const { hostname, port, socket: handlers, tls: secured, ...rest } = options ?? {};
    const host = String(hostname ?? "").replace(/^\[(.*)\]$/, "$1");
    if (options?.unix || options?.fd !== undefined || !host || net.isIP(host) || !(Number(port) > 0)) return connect(options);
    const named = secured && { serverName: host, ...(secured === true ? {} : secured) };
    return new Promise((resolve, reject) => {
      let answer = "";
      const fails = (socket, error) => {
        handlers.connectError?.(socket, error);
        reject(error);
      };
      const waiting = {
        open: (socket) => void socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nhost: ${host}:${port}\r\nproxy-authorization: Basic ${proxy.login}${END}`),
        data(socket, chunk) {
          answer += Buffer.from(chunk).toString("latin1");
          const end = answer.indexOf(END);
          if (end < 0 && answer.length < HEAD) return;
          const line = answer.slice(0, answer.indexOf("\r\n"));
          if (!/^HTTP\/\d\.\d 200 /.test(line)) {
            socket.reload({ socket: { data() {} } });
            socket.end();
            return fails(socket, refused(line, host, port));
          }
          const early = Buffer.from(answer.slice(end + END.length), "latin1");
          let own = socket;
          if (named) [, own] = socket.upgradeTLS({ data: rest.data, tls: named, socket: handlers });
          else {
            socket.data = rest.data;
            socket.reload({ socket: handlers });
            handlers.open?.(socket);
            if (early.length) handlers.data?.(socket, early);
          }
          resolve(own);
        },
        close: (socket) => fails(socket, refused("", host, port)),
        error: fails,
        connectError: fails,
      };
      connect({ ...rest, hostname: proxy.host, port: proxy.port, socket: waiting }).catch(reject);
    });
  };
}

// A Worker has globals and modules of its own, and begins with the script that leads its connections. Node's `eval: true` runs ahead
// of it.
function wrapWorkers() {
  const script = new URL("./worker.mjs", import.meta.url).href;
  const begun = (options) =>
    globalThis.Bun
      ? { ...options, preload: [script, ...[options?.preload ?? []].flat()] }
      : { ...options, execArgv: ["--import", script, ...(options?.execArgv ?? process.execArgv)] };
  const led = (target) =>
    new Proxy(target, { construct: (made, [name, options], self) => Reflect.construct(made, [name, begun(options)], self) });
  if (globalThis.Bun) globalThis.Worker = led(globalThis.Worker);
  // Not imported: Bun would hand out what is exported then.
  const threads = createRequire(import.meta.url)("node:worker_threads");
  threads.Worker = led(threads.Worker);
}

// No name is looked up in a sandbox. What is connected to by name is looked up by the proxy, where it is granted.
function explainLookups() {
  const explained = (error, name) => {
    const why = "names are not looked up here: connect by the name itself (fetch, http, net, tls, Bun.connect), if `hosts` grants it, or by an address";
    if (error?.syscall && /ENOTFOUND|EAI_|ECONNREFUSED|ETIMEOUT/.test(error.code ?? "")) error.message += ` (${name}: ${why})`;
    return error;
  };
  const { lookup } = dns;
  dns.lookup = (name, ...rest) => {
    const done = rest.pop();
    return lookup(name, ...rest, typeof done === "function" ? (error, ...found) => done(error && explained(error, name), ...found) : done);
  };
  const promised = dns.promises.lookup;
  dns.promises.lookup = (name, ...rest) => promised(name, ...rest).catch((error) => Promise.reject(explained(error, name)));
}

// Bun's `fetch` knows its proxy from the environment; Node's uses the sockets from here, and so do `http` and `https`.
export function route(address) {
  const proxy = proxyOf(address);
  wrapSockets(proxy);
  if (globalThis.Bun && globalThis.WebSocket) wrapWebSocket(proxy);
  if (globalThis.Bun) wrapConnect(proxy);
  wrapWorkers();
  explainLookups();
  syncBuiltinESMExports();
}
