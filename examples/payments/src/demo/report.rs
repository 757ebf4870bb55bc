//! What the scenes came to, as a table.

use std::fmt;
use std::process::ExitCode;

use comfy_table::{ContentArrangement, Table, presets};

/// What every kind of second request got.
#[derive(Debug)]
pub struct Report {
    scenes: Vec<Scene>,
}

/// One kind of second request: what each of its requests got, and what the provider charged for all of them.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) what: &'static str,
    pub(super) got: Vec<String>,
    pub(super) expected: Vec<&'static str>,
    pub(super) charges: usize,
    pub(super) expected_charges: usize,
}

impl Report {
    pub(super) fn of(scenes: Vec<Scene>) -> Self {
        Self { scenes }
    }

    /// Whether each got what it should.
    pub fn is_right(&self) -> bool {
        self.scenes.iter().all(Scene::is_right)
    }

    /// What a program that shows the report ends with.
    pub fn exit_code(&self) -> ExitCode {
        if self.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl Scene {
    fn is_right(&self) -> bool {
        self.got == self.expected && self.charges == self.expected_charges
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["second request", "what each got", "charges", ""]);
        for scene in &self.scenes {
            let verdict = match scene.is_right() {
                true => "right".to_owned(),
                false => format!("WRONG, expected:\n{}\n{} charges", scene.expected.join("\n"), scene.expected_charges),
            };
            table.add_row([scene.what, &scene.got.join("\n"), &scene.charges.to_string(), &verdict]);
        }
        let kinds = self.scenes.len();
        match self.scenes.iter().filter(|scene| !scene.is_right()).count() {
            0 => write!(f, "{table}\n{kinds} kinds of second request, each got what it should."),
            wrong => {
                write!(f, "{table}\n{wrong} of {kinds} kinds of second request got something else than they should.")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(got: &[&str], charges: usize) -> Scene {
        let got = got.iter().map(|got| (*got).to_owned()).collect();
        Scene {
            what: "the same command again",
            got,
            expected: vec!["201", "201 replayed"],
            charges,
            expected_charges: 1,
        }
    }

    #[test]
    fn a_scene_that_got_something_else_makes_the_demo_fail() {
        let right = || scene(&["201", "201 replayed"], 1);
        assert!(Report::of(vec![right(), right()]).is_right());
        for wrong in [
            scene(&["201", "201"], 1),
            scene(&["201"], 1),
            scene(&["201 replayed", "201"], 1),
            scene(&["201", "201 replayed"], 2),
            scene(&["201", "201 replayed"], 0),
        ] {
            let report = Report::of(vec![right(), wrong, right()]);
            assert!(!report.is_right(), "{report}");
            assert!(
                report.to_string().ends_with("1 of 3 kinds of second request got something else than they should.")
            );
            assert_eq!(format!("{:?}", report.exit_code()), format!("{:?}", ExitCode::FAILURE));
        }
        assert_eq!(format!("{:?}", Report::of(vec![right()]).exit_code()), format!("{:?}", ExitCode::SUCCESS));
        assert_ne!(format!("{:?}", ExitCode::SUCCESS), format!("{:?}", ExitCode::FAILURE));
    }
}
