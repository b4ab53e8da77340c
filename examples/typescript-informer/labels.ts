// A controller: every ConfigMap gets the label `seen`.
import {
  CoreV1Api,
  type KubeConfig,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
} from "@kubernetes/client-node";

export interface Controller {
  start(): Promise<void>;
  stop(): Promise<void>;
}

export function labelConfigMaps(config: KubeConfig, namespace: string): Controller {
  const core = config.makeApiClient(CoreV1Api);
  const list = () => core.listNamespacedConfigMap({ namespace });
  const informer = makeInformer<V1ConfigMap>(config, `/api/v1/namespaces/${namespace}/configmaps`, list);
  informer.on("add", async (found) => {
    if (found.metadata?.labels?.seen) return;
    const body = { metadata: { labels: { seen: "yes" } } };
    const options = setHeaderOptions("Content-Type", PatchStrategy.MergePatch);
    await core.patchNamespacedConfigMap({ name: found.metadata!.name!, namespace, body }, options);
  });
  let stopped = false;
  // A watch that is cut is started again.
  informer.on("error", () => {
    if (!stopped) setTimeout(() => informer.start(), 50);
  });
  return {
    start: () => informer.start(),
    stop: () => {
      stopped = true;
      return informer.stop();
    },
  };
}
