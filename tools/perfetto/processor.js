// Runs the trace processor of Perfetto's page (engine_bundle.js, trace_processor.wasm) over a stream of its requests:
// node processor.js FOLDER < TraceProcessorRpcStream > TraceProcessorRpcStream
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");

const folder = process.argv[2];
const read = (name) => fs.readFileSync(path.join(folder, path.basename(name)));
process.type = "renderer"; // or else the bundle sees that this is no browser's worker
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.importScripts = () => {};
globalThis.location = { href: "file:///engine_bundle.js" };
globalThis.XMLHttpRequest = class {
  open(method, name) { this.name = name; }
  send() { this.response = new Uint8Array(read(this.name)).buffer; this.status = 200; }
};
console.log = console.warn = console.error;

const replies = [];
const port = { postMessage: (reply) => replies.push(Buffer.from(reply)) };
vm.runInThisContext(read("engine_bundle.js").toString());
self.onmessage({ data: port });
setTimeout(() => {
  port.onmessage({ data: new Uint8Array(fs.readFileSync(0)) });
  fs.writeFileSync(1, Buffer.concat(replies));
}, 200); // the module is ready by then
