"""Tests of the operator under faults. Each fails on one bug of `buggy.py`, and passes with `fixed.py`."""


def test_conflict_loses_no_update(world):
    with world.cluster.faults.add(
        verb="update", resource="configmaps", name="index", status=409, times=1
    ) as fault:
        world.site("Cats")
    assert fault.hits == 1
    assert world.cluster.get("configmap/index").get("data") == {"blog": "Cats"}


def test_stale_read_makes_no_second_theme(world):
    version = world.cluster.get("configmap/index")["metadata"]["resourceVersion"]
    world.site("Cats")
    themes_of = 'request.query["labelSelector"].startsWith("theme=")'
    with world.cluster.faults.add(
        verb="list", resource="configmaps", expression=themes_of, stale_read=version
    ):
        world.site("Dogs")
    themes = [c for c in world.cluster.list("configmaps") if "theme" in c["metadata"].get("labels", {})]
    assert len(themes) == 1


def test_expired_list_is_counted_whole(world):
    for name in ("a", "b", "c"):
        world.page(name)
    second_chunk = 'request.query["continue"] != ""'
    with world.cluster.faults.add(
        verb="list", resource="configmaps", expression=second_chunk, expire_history=True, times=1
    ) as fault:
        world.site("Cats")
    assert fault.hits == 1
    assert world.cluster.get("site/blog")["status"]["pages"] == 3


def test_deletion_during_a_cut_is_not_missed(world):
    for name in ("a", "b"):
        world.page(name)
    cluster = world.cluster
    # The watch is cut. The next one starts when the rule is removed, after the deletion.
    with cluster.faults.add(verb="watch", resource="configmaps", cut_after=0, delay="1h") as fault:
        assert fault.hits == 1
        cluster.delete("configmap/b")
    world.page("c")
    assert world.pages(cluster.get("configmap/report")) == ["a", "c"]
