// Prints the types of a .tflite file's nodes as Netron reads them: node tools/netron.mjs FOLDER_OF_NETRON FILE
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, path] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${folder}/${name}`).href);
const flatbuffers = await load("flatbuffers.js");
const base = await load("base.js");
const tflite = await load("tflite.js");
const stream = new base.BinaryStream(new Uint8Array(readFileSync(path)));
const context = {
  identifier: "model.tflite",
  stream,
  peek: async (type) => (type === "flatbuffers.binary" ? flatbuffers.BinaryReader.open(stream) : null),
  set: (type, value) => Object.assign(context, { type, value }).type,
  require: async (name) => load(`${name}.js`),
  metadata: async () => ({ type: (name) => ({ name }), attribute: () => null }),
};
const factory = new tflite.ModelFactory();
await factory.match(context);
const model = await factory.open(context);
console.log(JSON.stringify(model.modules.flatMap((graph) => graph.nodes.map((node) => node.type.name))));
