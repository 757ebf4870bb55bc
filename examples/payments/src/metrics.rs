//! What idem counts, as Prometheus text. `docs/operations.md` says which of it to watch.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// The program's numbers, from the first use on.
pub fn numbers() -> &'static PrometheusHandle {
    static NUMBERS: OnceLock<PrometheusHandle> = OnceLock::new();
    NUMBERS.get_or_init(|| PrometheusBuilder::new().install_recorder().expect("nothing else in this program records"))
}
