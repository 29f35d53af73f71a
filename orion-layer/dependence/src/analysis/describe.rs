//! Dependences in words, for people who never heard of distance vectors.
use super::{Dependence, Dependences, Distance, Exactness};
use crate::loop_nest::LoopNest;

impl Dependences {
    /// One sentence for each pair of accesses that conflict.
    pub fn describe_all(&self, nest: &LoopNest) -> Vec<String> {
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for dependence in &self.list {
            let pair = pair(dependence);
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        pairs.into_iter().map(|pair| self.pair_in_words(nest, pair)).collect()
    }

    /// The sentence for the pair of accesses that one dependence is of.
    pub fn describe_conflict(&self, nest: &LoopNest, dependence: &Dependence) -> String {
        self.pair_in_words(nest, pair(dependence))
    }

    fn pair_in_words(&self, nest: &LoopNest, wanted: (usize, usize)) -> String {
        let all: Vec<&Dependence> =
            self.list.iter().filter(|dependence| pair(dependence) == wanted).collect();
        let conditions: Vec<String> = (0..self.dims)
            .filter_map(|dim| {
                let name = &nest.dims[dim].name;
                let first = all.first()?.vector[dim];
                let same = all.iter().all(|dependence| dependence.vector[dim] == first);
                match first {
                    Distance::Exact(0) if same => Some(format!("with the same {name}")),
                    Distance::Exact(distance) if same => {
                        Some(format!("whose {name} differs by {}", distance.unsigned_abs()))
                    }
                    _ => None,
                }
            })
            .collect();
        let who = match conditions.is_empty() {
            true => "any two iterations".into(),
            false => format!("iterations {}", conditions.join(" and ")),
        };
        let certain = all.iter().all(|dependence| dependence.exactness != Exactness::Assumed);
        let (a, b) = (&nest.accesses[wanted.0], &nest.accesses[wanted.1]);
        let place = |access: &crate::loop_nest::Access| match access.line {
            0 => access.text.clone(),
            line => format!("{} (line {line})", access.text),
        };
        let what = match (wanted.0 == wanted.1, a.mode.writes() && b.mode.writes()) {
            (true, _) => format!("change the same elements of {} in {}", nest.arrays[a.array].name, place(a)),
            (false, true) => {
                format!(
                    "change the same elements of {}: {} and {}",
                    nest.arrays[a.array].name,
                    place(a),
                    place(b)
                )
            }
            (false, false) => {
                let (writer, reader) = if a.mode.writes() { (a, b) } else { (b, a) };
                let array = &nest.arrays[a.array].name;
                format!(
                    "use the same elements of {array}: {} changes what {} reads",
                    place(writer),
                    place(reader)
                )
            }
        };
        format!("{who} {}{what}", if certain { "" } else { "may " })
    }
}

/// The accesses of a dependence, whichever comes first.
fn pair(dependence: &Dependence) -> (usize, usize) {
    (dependence.source.min(dependence.sink), dependence.source.max(dependence.sink))
}
