"""Ordinary tests of the operator. They pass with and without its bugs."""


def test_site_is_registered_and_has_one_theme(world):
    world.site("Cats")
    world.site("Dogs")
    assert world.cluster.get("configmap/index")["data"] == {"blog": "Dogs"}
    themes = [c for c in world.cluster.list("configmaps") if "theme" in c["metadata"].get("labels", {})]
    assert len(themes) == 1


def test_pages_are_counted_and_reported(world):
    for name in ("a", "b", "c"):
        world.page(name)
    world.site("Cats")
    assert world.cluster.get("site/blog")["status"]["pages"] == 3
    world.cluster.delete("configmap/b")
    world.cluster.wait("configmap/report", lambda found: world.pages(found) == ["a", "c"], timeout=60)
