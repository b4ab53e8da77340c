// Exercises @kubernetes/client-node against the server of KUBECONFIG.
// Usage: node main.js EXERCISE NAMESPACE

import assert from 'node:assert/strict';
import * as k8s from '@kubernetes/client-node';

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);

async function eventually(what: string, condition: () => boolean): Promise<void> {
    for (const end = Date.now() + 60_000; !condition(); ) {
        assert.ok(Date.now() < end, `timed out while waiting: ${what}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

function configMap(name: string, x: string, labels: Record<string, string> = {}): k8s.V1ConfigMap {
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data: { x } };
}

async function informer(namespace: string): Promise<void> {
    await core.createNamespacedConfigMap({ namespace, body: configMap('before', '1', { by: 'ecosystem' }) });
    const shared = k8s.makeInformer(
        config,
        `/api/v1/namespaces/${namespace}/configmaps`,
        () => core.listNamespacedConfigMap({ namespace, labelSelector: 'by=ecosystem' }),
        'by=ecosystem',
    );
    const seen: string[] = [];
    for (const verb of ['add', 'update', 'delete'] as const) {
        shared.on(verb, (object: k8s.V1ConfigMap) => seen.push(`${verb} ${object.metadata?.name} ${object.data?.x}`));
    }
    shared.on('error', (error) => seen.push(`error ${error}`));
    await shared.start();
    await core.createNamespacedConfigMap({ namespace, body: configMap('later', '1', { by: 'ecosystem' }) });
    await core.replaceNamespacedConfigMap({ name: 'later', namespace, body: configMap('later', '2', { by: 'ecosystem' }) });
    await core.createNamespacedConfigMap({ namespace, body: configMap('other', '1') });
    await core.deleteNamespacedConfigMap({ name: 'later', namespace });
    // An object that loses the label leaves the informer, in the last state that had the label.
    await core.replaceNamespacedConfigMap({ name: 'before', namespace, body: configMap('before', '3') });
    await eventually('deletions', () => seen.filter((event) => event.startsWith('delete')).length === 2);
    assert.deepEqual(seen, ['add before 1', 'add later 1', 'update later 2', 'delete later 2', 'delete before 1']);
    assert.deepEqual(shared.list(namespace), []);
    await shared.stop();
}

async function watch(namespace: string): Promise<void> {
    const events: string[] = [];
    let bookmark = '';
    let ended: unknown = 'not yet';
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const query = { sendInitialEvents: true, allowWatchBookmarks: true, resourceVersionMatch: 'NotOlderThan', fieldSelector: 'metadata.name=a' };
    await core.createNamespacedConfigMap({ namespace, body: configMap('a', '1') });
    const controller = await new k8s.Watch(config).watch(
        path,
        query,
        (phase, object) => {
            events.push(`${phase} ${object.metadata.name ?? ''}`);
            bookmark ||= object.metadata.annotations?.['k8s.io/initial-events-end'] ?? '';
        },
        (error) => (ended = error),
    );
    await eventually('the bookmark', () => bookmark === 'true');
    await core.deleteNamespacedConfigMap({ name: 'a', namespace });
    await eventually('the deletion', () => events.includes('DELETED a'));
    assert.deepEqual(events, ['ADDED a', 'BOOKMARK ', 'DELETED a']);
    controller.abort();
    await eventually('the end of the watch', () => ended !== 'not yet');
}

async function patch(namespace: string): Promise<void> {
    await core.createNamespacedConfigMap({ namespace, body: configMap('a', '1') });
    const write = (body: unknown, strategy: k8s.PatchStrategy) =>
        core.patchNamespacedConfigMap({ name: 'a', namespace, body }, k8s.setHeaderOptions('Content-Type', strategy));
    await write([{ op: 'test', path: '/data/x', value: '1' }, { op: 'add', path: '/data/y', value: '2' }], k8s.PatchStrategy.JsonPatch);
    await write({ data: { x: null } }, k8s.PatchStrategy.MergePatch);
    const held = await write({ metadata: { labels: { l: '3' } } }, k8s.PatchStrategy.StrategicMergePatch);
    assert.deepEqual([held.data, held.metadata?.labels], [{ y: '2' }, { l: '3' }]);
    const stale = write([{ op: 'test', path: '/data/y', value: '1' }], k8s.PatchStrategy.JsonPatch);
    await assert.rejects(stale, (error: k8s.ApiException<unknown>) => error.code === 422);
}

async function apply(namespace: string): Promise<void> {
    const objects = k8s.KubernetesObjectApi.makeApiClient(config);
    const crd: k8s.V1CustomResourceDefinition = {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `gears.${namespace}.example.com` },
        spec: {
            group: `${namespace}.example.com`,
            scope: 'Namespaced',
            names: { plural: 'gears', kind: 'Gear' },
            versions: [
                {
                    name: 'v1',
                    served: true,
                    storage: true,
                    schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', x_kubernetes_preserve_unknown_fields: true } } } },
                },
            ],
        },
    };
    await objects.create(crd);
    let established = false;
    for (let tries = 0; tries < 100 && !established; tries++) {
        const held = await objects.read<k8s.V1CustomResourceDefinition>({ ...crd, metadata: { name: crd.metadata!.name! } });
        established = held.status?.conditions?.some((c) => c.type === 'Established' && c.status === 'True') ?? false;
    }
    const gear = (spec: Record<string, string>) => ({
        apiVersion: `${namespace}.example.com/v1`,
        kind: 'Gear',
        metadata: { name: 'g', namespace },
        spec,
    });
    const send = (spec: Record<string, string>, manager: string, force?: boolean) =>
        objects.patch(gear(spec), undefined, undefined, manager, force, k8s.PatchStrategy.ServerSideApply);
    await send({ a: '1', b: '1' }, 'first');
    await assert.rejects(send({ b: '2' }, 'second'), (error: k8s.ApiException<unknown>) => error.code === 409);
    await send({ b: '2' }, 'second', true);
    const held = await send({}, 'first');
    assert.deepEqual(held.spec, { b: '2' });
    const managers = (held as k8s.KubernetesObject).metadata?.managedFields?.map((entry) => entry.manager);
    assert.deepEqual(managers?.sort(), ['first', 'second']);
}

const exercises: Record<string, (namespace: string) => Promise<void>> = { informer, watch, patch, apply };
const [exercise, namespace] = process.argv.slice(2);
await core.createNamespace({ body: { metadata: { name: namespace } } });
await exercises[exercise](namespace);
console.log('passed');
process.exit(0);
