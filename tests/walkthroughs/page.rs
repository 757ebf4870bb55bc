//! The page as a script.

use std::fmt;

/// The page: text as it is, and blocks that are replayed.
pub(crate) struct Page {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    Block { fence: String, block: Block },
}

pub(crate) enum Block {
    Edit(String),
    Message(String),
    Review { name: String, shown: String },
    Accept,
    Passes,
}

impl Page {
    pub(crate) fn read(page: &str) -> Self {
        let mut parts = Vec::new();
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            let block = match line {
                "<!-- accept -->" => Block::Accept,
                "<!-- passes -->" => Block::Passes,
                _ => {
                    let Some(kind) = line.strip_prefix("```").filter(|kind| !kind.is_empty()) else {
                        parts.push(Part::Text(format!("{line}\n")));
                        continue;
                    };
                    let inside: String = lines
                        .by_ref()
                        .take_while(|line| *line != "```")
                        .fold(String::new(), |all, line| all + line + "\n");
                    match kind.split_once(' ') {
                        Some(("diff", "source")) => Block::Edit(inside),
                        Some(("text", "message")) => Block::Message(inside),
                        Some(("diff", name)) => Block::Review { name: name.to_owned(), shown: inside },
                        _ => {
                            parts.push(Part::Text(format!("{line}\n{inside}```\n")));
                            continue;
                        }
                    }
                }
            };
            parts.push(Part::Block { fence: line.to_owned(), block });
        }
        Self { parts }
    }

    /// The test file that every section begins with.
    pub(crate) fn source(&self) -> &str {
        let source = self.parts.iter().find_map(|part| match part {
            Part::Text(text) => text.strip_prefix("```rust contract.rs\n")?.strip_suffix("```\n"),
            Part::Block { .. } => None,
        });
        source.expect("the page has a block `rust contract.rs`")
    }

    /// The blocks below each heading that has some.
    pub(crate) fn sections(&mut self) -> Vec<Vec<&mut Block>> {
        let mut sections: Vec<Vec<_>> = vec![Vec::new()];
        for part in &mut self.parts {
            match part {
                Part::Text(text) if text.starts_with("##") => sections.push(Vec::new()),
                Part::Text(_) => {}
                Part::Block { block, .. } => sections.last_mut().expect("there is a first one").push(block),
            }
        }
        sections.retain(|section| !section.is_empty());
        assert!(sections.len() > 10, "the page is all but empty");
        sections
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Block { fence, block } => {
                    writeln!(f, "{fence}")?;
                    if let Block::Edit(shown) | Block::Message(shown) | Block::Review { shown, .. } = block {
                        write!(f, "{}\n```\n", shown.trim_end())?;
                    }
                }
            }
        }
        Ok(())
    }
}
