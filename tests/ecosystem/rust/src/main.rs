//! Exercises kube-rs against the server of KUBECONFIG.
//! Usage: ecosystem EXERCISE NAMESPACE

use std::{collections::BTreeMap, error::Error, future::Future, sync::Arc, time::Duration};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        Controller, WatchStreamExt,
        controller::Action,
        finalizer::{self, finalizer},
        reflector,
        wait::{await_condition, conditions},
        watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

type Outcome = Result<(), Box<dyn Error>>;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "rust.example.com",
    version = "v1",
    kind = "Valve",
    namespaced,
    status = "ValveStatus"
)]
struct ValveSpec {
    size: u32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct ValveStatus {
    seen: u32,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error(transparent)]
    Finalizer(#[from] Box<finalizer::Error<kube::Error>>),
}

fn config_map(name: &str, x: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            labels: Some(BTreeMap::from([("by".into(), "ecosystem".into())])),
            ..Default::default()
        },
        data: Some(BTreeMap::from([("x".into(), x.into())])),
        ..Default::default()
    }
}

async fn eventually<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) -> Outcome {
    for _ in 0..3000 {
        if condition().await {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(format!("timed out while waiting: {what}").into())
}

/// A watcher, with the initial list as a list or as a stream of events.
async fn watch(client: Client, namespace: &str) -> Outcome {
    let api: Api<ConfigMap> = Api::namespaced(client, namespace);
    let selected = watcher::Config::default().labels("by=ecosystem");
    for (round, config) in [selected.clone(), selected.streaming_lists()]
        .into_iter()
        .enumerate()
    {
        api.create(&PostParams::default(), &config_map("before", "1"))
            .await?;
        let mut events = watcher(api.clone(), config).boxed();
        let mut seen = vec![];
        while let Some(event) = events.try_next().await? {
            let shown = match event {
                watcher::Event::Init => "init".into(),
                watcher::Event::InitApply(o) => format!("init {}", o.name_any()),
                watcher::Event::InitDone => "done".into(),
                watcher::Event::Apply(o) => format!("apply {}", o.name_any()),
                watcher::Event::Delete(o) => format!("delete {}", o.name_any()),
            };
            seen.push(shown);
            match seen.last().map(String::as_str) {
                Some("done") => {
                    _ = api
                        .create(&PostParams::default(), &config_map("later", "1"))
                        .await?
                }
                Some("apply later") => _ = api.delete("later", &DeleteParams::default()).await?,
                Some("delete later") => break,
                _ => {}
            }
        }
        let wanted = ["init", "init before", "done", "apply later", "delete later"];
        if seen != wanted {
            return Err(format!("round {round}: {seen:?}").into());
        }
        api.delete("before", &DeleteParams::default()).await?;
    }
    Ok(())
}

async fn reflect(client: Client, namespace: &str) -> Outcome {
    let api: Api<ConfigMap> = Api::namespaced(client, namespace);
    api.create(&PostParams::default(), &config_map("a", "1"))
        .await?;
    let (store, writer) = reflector::store();
    let config = watcher::Config::default()
        .labels("by=ecosystem")
        .streaming_lists();
    let stream = watcher(api.clone(), config)
        .default_backoff()
        .reflect(writer)
        .touched_objects();
    let task = tokio::spawn(stream.for_each(|_| std::future::ready(())));
    store.wait_until_ready().await?;
    let key = reflector::ObjectRef::new("a").within(namespace);
    let value = || {
        store
            .get(&key)
            .and_then(|held| held.data.clone()?.remove("x"))
    };
    if value().as_deref() != Some("1") {
        return Err("the store lacks the object".into());
    }
    let patch = serde_json::json!({"data": {"x": "2"}});
    api.patch("a", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    eventually("the change in the store", || async {
        value().as_deref() == Some("2")
    })
    .await?;
    api.delete("a", &DeleteParams::default()).await?;
    eventually("the deletion in the store", || async { store.is_empty() }).await?;
    task.abort();
    Ok(())
}

async fn apply(client: Client, namespace: &str) -> Outcome {
    let api: Api<ConfigMap> = Api::namespaced(client, namespace);
    let first = PatchParams::apply("first");
    let second = PatchParams::apply("second");
    api.patch("a", &first, &Patch::Apply(config_map("a", "1").applied()))
        .await?;
    match api
        .patch("a", &second, &Patch::Apply(config_map("a", "2").applied()))
        .await
    {
        Err(kube::Error::Api(status)) if status.code == 409 && status.reason == "Conflict" => {}
        other => return Err(format!("expected a conflict, not {other:?}").into()),
    }
    let held = api
        .patch(
            "a",
            &second.clone().force(),
            &Patch::Apply(config_map("a", "2").applied()),
        )
        .await?;
    let managers: Vec<_> = held
        .managed_fields()
        .iter()
        .filter_map(|entry| entry.manager.clone())
        .collect();
    if held.data != config_map("a", "2").data || managers.len() != 2 {
        return Err(format!("unexpected object {held:?}").into());
    }
    Ok(())
}

/// Adds the type, which server-side apply needs.
trait Applied {
    fn applied(self) -> serde_json::Value;
}

impl Applied for ConfigMap {
    fn applied(self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).expect("a ConfigMap is JSON");
        value["apiVersion"] = "v1".into();
        value["kind"] = "ConfigMap".into();
        value
    }
}

/// Writes a ConfigMap of the valve's size and the status. The finalizer removes a second ConfigMap.
async fn reconcile(valve: Arc<Valve>, client: Arc<Client>) -> Result<Action, Failure> {
    let namespace = valve.namespace().expect("valves have a namespace");
    let valves: Api<Valve> = Api::namespaced((*client).clone(), &namespace);
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    let action = finalizer(&valves, "rust.example.com/cleanup", valve, |event| async {
        match event {
            finalizer::Event::Apply(valve) => {
                let manager = PatchParams::apply("controller").force();
                let mut map = config_map(&valve.name_any(), &valve.spec.size.to_string());
                map.metadata.owner_references =
                    valve.controller_owner_ref(&()).map(|owner| vec![owner]);
                maps.patch(&valve.name_any(), &manager, &Patch::Apply(map.applied()))
                    .await?;
                let status = serde_json::json!({
                    "apiVersion": Valve::api_version(&()),
                    "kind": Valve::kind(&()),
                    "status": ValveStatus { seen: valve.spec.size },
                });
                valves
                    .patch_status(&valve.name_any(), &manager, &Patch::Apply(status))
                    .await?;
            }
            finalizer::Event::Cleanup(valve) => {
                let marker = config_map(&format!("{}-cleaned", valve.name_any()), "1");
                maps.create(&PostParams::default(), &marker).await?;
            }
        }
        Ok(Action::await_change())
    });
    Ok(action.await.map_err(Box::new)?)
}

async fn control(client: Client, namespace: &str) -> Outcome {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.patch(
        "valves.rust.example.com",
        &PatchParams::apply("crd"),
        &Patch::Apply(Valve::crd()),
    )
    .await?;
    await_condition(
        crds,
        "valves.rust.example.com",
        conditions::is_crd_established(),
    )
    .await?;
    let valves: Api<Valve> = Api::namespaced(client.clone(), namespace);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let controller = Controller::new(valves.clone(), watcher::Config::default())
        .owns(
            maps.clone(),
            watcher::Config::default().labels("by=ecosystem"),
        )
        .run(
            reconcile,
            |_, error, _| {
                eprintln!("reconciliation failed: {error}");
                Action::requeue(Duration::from_millis(100))
            },
            Arc::new(client),
        );
    let task = tokio::spawn(controller.for_each(|_| std::future::ready(())));
    valves
        .create(
            &PostParams::default(),
            &Valve::new("v", ValveSpec { size: 1 }),
        )
        .await?;
    let seen = |size: u32| {
        let valves = valves.clone();
        async move {
            let held = valves.get("v").await.ok().and_then(|valve| valve.status);
            held.is_some_and(|status| status.seen == size)
        }
    };
    eventually("the first status", || seen(1)).await?;
    let patch = serde_json::json!({"spec": {"size": 2}});
    valves
        .patch("v", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    eventually("the second status", || seen(2)).await?;
    // The controller restores an owned object that somebody deleted.
    let first = maps.get("v").await?.uid();
    maps.delete("v", &DeleteParams::default()).await?;
    eventually("the restored ConfigMap", || async {
        maps.get("v")
            .await
            .is_ok_and(|restored| restored.uid() != first)
    })
    .await?;
    valves.delete("v", &DeleteParams::default()).await?;
    eventually("the end of the valve", || async {
        matches!(valves.get_opt("v").await, Ok(None))
    })
    .await?;
    maps.get("v-cleaned").await?;
    task.abort();
    // The garbage collector removes what the valve owned.
    eventually("the end of the ConfigMap", || async {
        matches!(maps.get_opt("v").await, Ok(None))
    })
    .await
}

#[tokio::main]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, exercise, namespace] = arguments.as_slice() else {
        return Err("usage: ecosystem EXERCISE NAMESPACE".into());
    };
    let client = Client::try_default().await?;
    let created = Namespace {
        metadata: ObjectMeta {
            name: Some(namespace.clone()),
            ..Default::default()
        },
        ..Default::default()
    };
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &created)
        .await?;
    match exercise.as_str() {
        "watcher" => watch(client, namespace).await?,
        "reflector" => reflect(client, namespace).await?,
        "apply" => apply(client, namespace).await?,
        "controller" => control(client, namespace).await?,
        other => return Err(format!("no exercise {other}").into()),
    }
    println!("passed");
    Ok(())
}
