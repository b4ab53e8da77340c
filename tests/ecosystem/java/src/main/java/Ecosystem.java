import io.fabric8.kubeapitest.KubeAPIServer;
import io.fabric8.kubeapitest.KubeAPIServerConfigBuilder;
import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Exercises the fabric8 client against the server of KUBECONFIG, or against a server that kube-api-test
 * or jenvtest starts. Usage: Ecosystem EXERCISE NAMESPACE, or Ecosystem LIBRARY VERSION
 */
public final class Ecosystem {
  private interface Exercise {
    void run(KubernetesClient client, String namespace) throws Exception;
  }

  private static final Map<String, Exercise> EXERCISES =
      Map.of(
          "informer", Ecosystem::informer,
          "watch", Ecosystem::watch,
          "apply", Ecosystem::apply,
          "election", Ecosystem::election);

  public static void main(String[] arguments) throws Exception {
    if (arguments[0].equals("kube-api-test")) {
      kubeApiTest(arguments[1]);
    } else if (arguments[0].equals("jenvtest")) {
      jenvtest(arguments[1]);
    } else {
      try (KubernetesClient client = new KubernetesClientBuilder().build()) {
        inNamespace(client, arguments[1], EXERCISES.get(arguments[0]));
      }
    }
    System.out.println("passed");
    System.exit(0);
  }

  private static void inNamespace(KubernetesClient client, String name, Exercise exercise) throws Exception {
    client.resource(new NamespaceBuilder().withNewMetadata().withName(name).endMetadata().build()).create();
    exercise.run(client, name);
  }

  private static void require(boolean condition, Object shown) {
    if (!condition) {
      throw new AssertionError(String.valueOf(shown));
    }
  }

  private static void eventually(String what, BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!condition.getAsBoolean()) {
      require(System.nanoTime() < end, "timed out while waiting: " + what);
      Thread.sleep(20);
    }
  }

  private static ConfigMap configMap(String name, String x) {
    return new ConfigMapBuilder()
        .withNewMetadata()
        .withName(name)
        .addToLabels("by", "ecosystem")
        .endMetadata()
        .addToData("x", x)
        .build();
  }

  private static void informer(KubernetesClient client, String namespace) throws Exception {
    var maps = client.configMaps().inNamespace(namespace);
    maps.resource(configMap("before", "1")).create();
    List<String> seen = Collections.synchronizedList(new ArrayList<>());
    var informer =
        maps.withLabel("by", "ecosystem")
            .inform(
                new ResourceEventHandler<ConfigMap>() {
                  @Override
                  public void onAdd(ConfigMap map) {
                    seen.add("add " + map.getMetadata().getName());
                  }

                  @Override
                  public void onUpdate(ConfigMap old, ConfigMap map) {
                    seen.add("update " + map.getMetadata().getName() + " " + map.getData().get("x"));
                  }

                  @Override
                  public void onDelete(ConfigMap map, boolean unknown) {
                    seen.add("delete " + map.getMetadata().getName());
                  }
                });
    require(informer.hasSynced() && informer.getStore().list().size() == 1, "the informer did not sync");
    maps.resource(configMap("later", "1")).create();
    maps.withName("later")
        .edit(map -> new ConfigMapBuilder(map).addToData("x", "2").build());
    maps.withName("later").delete();
    maps.withName("before").edit(map -> new ConfigMapBuilder(map).editMetadata().removeFromLabels("by").endMetadata().build());
    eventually("deletions", () -> seen.contains("delete before"));
    require(
        seen.equals(List.of("add before", "add later", "update later 2", "delete later", "delete before")), seen);
    require(informer.getStore().list().isEmpty(), "the store is not empty");
    informer.close();
  }

  private static void watch(KubernetesClient client, String namespace) throws Exception {
    var maps = client.configMaps().inNamespace(namespace);
    var created = maps.resource(configMap("a", "1")).create();
    List<String> seen = Collections.synchronizedList(new ArrayList<>());
    CountDownLatch closed = new CountDownLatch(1);
    var watch =
        maps.withResourceVersion(created.getMetadata().getResourceVersion())
            .watch(
                new Watcher<ConfigMap>() {
                  @Override
                  public void eventReceived(Action action, ConfigMap map) {
                    seen.add(action + " " + map.getMetadata().getName());
                  }

                  @Override
                  public void onClose() {
                    closed.countDown();
                  }

                  @Override
                  public void onClose(WatcherException cause) {
                    seen.add("closed by " + cause);
                  }
                });
    maps.withName("a").patch(PatchContext.of(PatchType.JSON_MERGE), "{\"data\":{\"x\":null}}");
    maps.withName("a")
        .patch(PatchContext.of(PatchType.JSON), "[{\"op\":\"add\",\"path\":\"/data\",\"value\":{\"y\":\"2\"}}]");
    maps.withName("a").delete();
    eventually("the deletion", () -> seen.contains("DELETED a"));
    require(seen.equals(List.of("MODIFIED a", "MODIFIED a", "DELETED a")), seen);
    watch.close();
    require(closed.await(20, TimeUnit.SECONDS), "the watch did not close");
  }

  private static void apply(KubernetesClient client, String namespace) {
    var maps = client.configMaps().inNamespace(namespace);
    maps.resource(configMap("a", "1")).fieldManager("first").serverSideApply();
    try {
      maps.resource(configMap("a", "2")).fieldManager("second").serverSideApply();
      throw new AssertionError("expected a conflict");
    } catch (KubernetesClientException error) {
      require(error.getCode() == 409 && "Conflict".equals(error.getStatus().getReason()), error);
    }
    ConfigMap held = maps.resource(configMap("a", "2")).fieldManager("second").forceConflicts().serverSideApply();
    require(held.getData().equals(Map.of("x", "2")), held);
    require(held.getMetadata().getManagedFields().size() == 2, held);
    // A stale update conflicts, too.
    maps.resource(configMap("a", "3")).fieldManager("second").forceConflicts().serverSideApply();
    try {
      maps.resource(held).update();
      throw new AssertionError("expected a conflict");
    } catch (KubernetesClientException error) {
      require(error.getCode() == 409, error);
    }
  }

  private static CountDownLatch candidate(
      KubernetesClient client, String namespace, String name, List<java.util.concurrent.CompletableFuture<?>> runs) {
    CountDownLatch leads = new CountDownLatch(1);
    var elector =
        client
            .leaderElector()
            .withConfig(
                new LeaderElectionConfigBuilder()
                    .withName(name)
                    .withLock(new LeaseLock(namespace, "leader", name))
                    .withLeaseDuration(Duration.ofSeconds(15))
                    .withRenewDeadline(Duration.ofSeconds(10))
                    .withRetryPeriod(Duration.ofMillis(200))
                    .withReleaseOnCancel(true)
                    .withLeaderCallbacks(new LeaderCallbacks(leads::countDown, () -> {}, leader -> {}))
                    .build())
            .build();
    runs.add(elector.start());
    return leads;
  }

  private static void election(KubernetesClient client, String namespace) throws Exception {
    List<java.util.concurrent.CompletableFuture<?>> runs = new ArrayList<>();
    require(candidate(client, namespace, "first", runs).await(30, TimeUnit.SECONDS), "nobody leads");
    CountDownLatch second = candidate(client, namespace, "second", runs);
    require(!second.await(1, TimeUnit.SECONDS), "two candidates lead");
    runs.get(0).cancel(true);
    require(second.await(14, TimeUnit.SECONDS), "the second candidate did not take over");
    var lease = client.leases().inNamespace(namespace).withName("leader").get();
    require(lease.getSpec().getHolderIdentity().equals("second"), lease);
    runs.get(1).cancel(true);
  }

  /** All exercises against the executables in KUBE_API_TEST_DIR. */
  private static void kubeApiTest(String version) throws Exception {
    var server =
        new KubeAPIServer(
            KubeAPIServerConfigBuilder.anAPIServerConfig()
                .withOfflineMode(true)
                .withApiServerVersion(version)
                .withUpdateKubeConfig(false)
                .build());
    server.start();
    try {
      allExercises(server.getKubeConfigYaml());
    } finally {
      server.stop();
    }
  }

  private static void jenvtest(String version) throws Exception {
    var server =
        new io.javaoperatorsdk.jenvtest.KubeAPIServer(
            io.javaoperatorsdk.jenvtest.KubeAPIServerConfigBuilder.anAPIServerConfig()
                .withOfflineMode(true)
                .withApiServerVersion(version)
                .withUpdateKubeConfig(false)
                .build());
    server.start();
    try {
      allExercises(server.getKubeConfigYaml());
    } finally {
      server.stop();
    }
  }

  private static void allExercises(String kubeconfig) throws Exception {
    Config config = new ConfigBuilder(Config.fromKubeconfig(kubeconfig)).build();
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
      require(client.getKubernetesVersion().getMinor().equals("36"), client.getKubernetesVersion());
      for (var exercise : EXERCISES.entrySet()) {
        inNamespace(client, exercise.getKey(), exercise.getValue());
      }
    }
  }
}
