//! Figures of a report as OpenMetrics text, for Prometheus and compatible readers.

use std::fmt::Write;

use super::Report;
use super::metrics::{Family, Kind, Metric, Unit};

/// Content type of the text: OpenMetrics 1.0.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Report {
    /// Returns the [metrics](Self::metrics) as OpenMetrics 1.0 text, including the final `# EOF`.
    ///
    /// Examples of names: `gristmill_input_wait_share`, `gristmill_input_run_seconds_total`. A name ends in its unit if the unit is seconds
    /// or bytes. Names of counters end in `_total` after the unit.
    pub fn to_openmetrics(&self) -> String {
        let mut text = String::from("# TYPE gristmill_build info\n# HELP gristmill_build Version of gristmill.\n");
        sample(&mut text, "gristmill_build_info", Some(("version", env!("CARGO_PKG_VERSION"))), 1.0);
        for metrics in self.metrics().chunk_by(|a, b| a.family == b.family) {
            family(&mut text, metrics[0].family, metrics);
        }
        text + "# EOF\n"
    }
}

/// Returns the name of a family, with the unit written out.
fn name(family: &Family) -> String {
    let plain = family.name;
    match family.unit {
        Unit::Seconds => format!("gristmill_input_{}_seconds", plain.strip_suffix("_s").unwrap_or(plain)),
        _ => format!("gristmill_input_{plain}"),
    }
}

fn family(text: &mut String, family: &Family, metrics: &[Metric]) {
    let name = name(family);
    let (kind, suffix) = match family.kind {
        Kind::Gauge => ("gauge", ""),
        Kind::Counter => ("counter", "_total"),
    };
    let _ = writeln!(text, "# TYPE {name} {kind}");
    let unit = match family.unit {
        Unit::Seconds => Some("seconds"),
        Unit::Bytes => Some("bytes"),
        // Shares have no unit: the unit `ratio` would have to end their names.
        Unit::Ratio | Unit::None => None,
    };
    if let Some(unit) = unit {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {}", escaped(family.help));
    for metric in metrics {
        let label = family.label.zip(metric.label.as_deref());
        sample(text, &format!("{name}{suffix}"), label, metric.value);
    }
}

fn sample(text: &mut String, name: &str, label: Option<(&str, &str)>, value: f64) {
    let _ = match label {
        Some((label, of)) => writeln!(text, "{name}{{{label}=\"{}\"}} {value}", escaped(of)),
        None => writeln!(text, "{name} {value}"),
    };
}

/// Escapes a label value or a `HELP` text.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dataset::map::Range;
    use crate::{Load, MapDatasetExt};

    fn text_of(change: impl FnOnce(&mut Report)) -> String {
        let mut loader = Range::new(0, 99).map(|x| x + 1).to_iter().batch(2).loader().threads(2).build().unwrap();
        assert_eq!(loader.by_ref().count(), 50);
        let mut report = loader.report();
        change(&mut report);
        report.to_openmetrics()
    }

    #[test]
    fn every_sample_stands_behind_its_family_and_the_text_ends() {
        let text = text_of(|_| {});
        assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
        let (mut families, mut now, mut series) = (BTreeSet::new(), String::new(), BTreeSet::new());
        for line in text.lines() {
            if let Some(told) = line.strip_prefix("# TYPE ") {
                now = told.split(' ').next().unwrap().to_owned();
                assert!(families.insert(now.clone()), "{line}");
            } else if let Some(told) = line.strip_prefix("# ") {
                assert!(told == "EOF" || told.split(' ').nth(1) == Some(now.as_str()), "{line}");
            } else {
                let (of, value) = line.rsplit_once(' ').unwrap();
                assert!(series.insert(of.to_owned()) && value.parse::<f64>().unwrap().is_finite(), "{line}");
                let name = of.split('{').next().unwrap();
                assert!(
                    [now.clone(), format!("{now}_total"), format!("{now}_info")].iter().any(|n| n == name),
                    "{line}"
                );
            }
        }
        for line in [
            "# UNIT gristmill_input_run_seconds seconds",
            "# TYPE gristmill_input_elements counter",
            "gristmill_input_elements_total 50",
            "gristmill_input_threads 2",
            "gristmill_input_stage_elements_total{stage=\"1_map\"} 99",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }

    #[test]
    fn labels_are_escaped() {
        let text = text_of(|report| report.notes.push(("a \"b\"\\\n c".into(), 3)));
        assert!(text.contains("gristmill_input_notes_total{note=\"a \\\"b\\\"\\\\\\n c\"} 3\n"), "{text}");
    }
}
