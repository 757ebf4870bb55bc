//! idem-core under another name.

use crate::krate::renamed;

#[test]
fn a_renamed_dependency_is_found_by_its_new_name() {
    for (manifest, name) in [
        ("[dependencies]\nidem-core = \"0.1\"", None),
        ("[dependencies]\nidem-core.workspace = true", None),
        ("[dependencies]\nidem-core = { version = \"0.1\", features = [\"float\"] }", None),
        (
            "[dependencies]\nserde = { version = \"1\" }\nidem = { version = \"0.1\", package = \"idem-core\" }",
            Some("idem"),
        ),
        ("[dependencies]\nidem = { package='idem-core', version = \"0.1\" } # ours", Some("idem")),
        ("[dev-dependencies]\nour-idem = { path = \"..\", package = \"idem-core\" }", Some("our_idem")),
        ("[target.'cfg(unix)'.dependencies]\nidem = { package = \"idem-core\" }", Some("idem")),
        ("[dependencies.idem]\nversion = \"0.1\"\npackage = \"idem-core\"", Some("idem")),
        ("[dependencies.\"idem\"]\nversion = \"0.1\"\npackage = \"idem-core\"", Some("idem")),
        ("[dependencies]\nidem.version = \"0.1\"\nidem.package = \"idem-core\"", Some("idem")),
        (
            "[dependencies]\nidem = { version = \"0.1\", features = [\n  \"float\", # it's ours\n], package = \"idem-core\" }\nserde = \"1\"",
            Some("idem"),
        ),
        ("[dependencies.idem-core]\nversion = \"0.1\"", None),
        ("[package]\nname = \"idem-core\"\n[dependencies]\nidem = \"3\"", None),
        ("[dependencies]\n# idem = { package = \"idem-core\" }", None),
        ("[dependencies]\nidem = { package = \"idem-core-extra\" }", None),
        ("[dependencies]\nidem-axum = \"0.1\"", Some("idem_axum::idem_core")),
        ("[dependencies]\nweb = { package = \"idem-axum\" }", Some("web::idem_core")),
        ("[dependencies]\nidem-axum = \"0.1\"\n[dev-dependencies]\nidem-core = \"0.1\"", None),
        ("", None),
        ("[dependencies", None),
        ("= = [dependencies]\npackage = \"idem-core\"", None),
    ] {
        assert_eq!(renamed(manifest, "").as_deref(), name, "{manifest}");
    }
}

#[test]
fn a_name_from_the_workspace_is_found() {
    let workspace = "[workspace]\n[workspace.dependencies]\nidem = { package = \"idem-core\", version = \"0.1\" }";
    for (manifest, name) in [
        ("[dependencies]\nidem.workspace = true", Some("idem")),
        ("[dependencies]\nidem = { workspace = true, features = [\"float\"] }", Some("idem")),
        ("[dependencies]\nother.workspace = true", None),
        ("[dependencies]\nidem-core = \"0.1\"", None),
    ] {
        assert_eq!(renamed(manifest, workspace).as_deref(), name, "{manifest}");
    }
    assert_eq!(renamed(workspace, workspace), None);
}
