import assert from "node:assert";
import { after, before, test } from "node:test";
import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
import { type Controller, labelConfigMaps } from "./labels.js";

const config = new KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(CoreV1Api);
const namespace = `labels-${Date.now()}`;
let controller: Controller;

async function label(name: string): Promise<string> {
  for (let attempt = 0; attempt < 300; attempt++) {
    const found = await core.readNamespacedConfigMap({ name, namespace });
    const seen = found.metadata?.labels?.seen;
    if (seen) return seen;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${name} has no label`);
}

before(async () => {
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  controller = labelConfigMaps(config, namespace);
  await controller.start();
});

after(() => controller.stop());

test("a new ConfigMap gets the label", async () => {
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: "a" } } });
  assert.equal(await label("a"), "yes");
});

test("an informer continues after many objects", async () => {
  const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  for (const name of names) await core.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
  for (const name of names) assert.equal(await label(name), "yes");
});
