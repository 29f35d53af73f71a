//! Parts that go to the host where the next pass begins with them while a pass still runs.
//!
//! A part that the last tiles do not need is on its way while they run; else the next pass would begin by waiting for it. Whether
//! the same loop comes next is not known: a pass sends ahead what lies where the same loop left it, as nobody needed it elsewhere
//! in between. If another loop comes after all, parts went in vain, once.
use super::LoopPlan;
use hectare_dependence::hosts::Ahead;
use hectare_dsm::Rank;

impl LoopPlan {
    /// Whether parts of array `array`, which lies with `owners` when a pass begins, go ahead in it.
    pub(super) fn goes_ahead(&self, array: usize, owners: &[Rank]) -> bool {
        let lies_as = |rests: &dyn Fn(usize, Rank) -> Rank| {
            owners.iter().enumerate().all(|(part, owner)| rests(part, *owner) == *owner)
        };
        self.ahead.iter().any(|one| one.array == array)
            && (lies_as(&|part, owner| self.last(array, part, owner))
                || lies_as(&|part, owner| self.rests(array, part, owner)))
    }

    /// Who has part `part` of array `array` at the end of a pass in which parts of it go ahead.
    pub(super) fn rests(&self, array: usize, part: usize, owner: Rank) -> Rank {
        let found = self.ahead.iter().find(|one| (one.array, one.part) == (array, part));
        found.map_or_else(|| self.last(array, part, owner), |one| one.to)
    }

    /// The parts that are sent ahead after tile `tile` of worker `worker`, of the arrays for which `goes` says so.
    pub(super) fn ahead_after<'p>(
        &'p self,
        worker: usize,
        tile: usize,
        goes: &'p [bool],
    ) -> impl Iterator<Item = Ahead> + 'p {
        let is_due = move |one: &&Ahead| (one.worker, one.tile) == (worker, tile) && goes[one.array];
        self.ahead.iter().filter(is_due).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel_for;
    use hectare_dependence::hosts::{Hosts, Link};
    use std::rc::Rc;

    #[test]
    fn parts_go_ahead_where_the_same_loop_left_them() {
        crate::run(2, |w| {
            let ratings = w.entries([400, 300], 90_000, |k| ([k * 7 % 400, k * 11 % 300], k))?;
            let (mut users, mut films) = (w.zeros::<f32, 2>([400, 8])?, w.zeros::<f32, 2>([300, 8])?);
            parallel_for!(w, unordered, read ratings, write [users, films];
            for ((user, film), k) in ratings {
                users.row_mut(user)[0] += *k as f32;
                films.row_mut(film)[0] += 1.0;
            })?;
            let known: Vec<Rc<LoopPlan>> = w.plans().cloned().collect();
            let LoopPlan { nest, dependences, choice, .. } = &*known[0];
            let same = choice.moved(nest, dependences, &choice.movable().unwrap().bounds, 2).unwrap();
            let mut plan = known[0].moved_to(same, w);
            let arrays: Vec<_> = plan.nest.arrays.iter().map(|array| array.shape[0]).collect();
            let of = |len: usize| arrays.iter().position(|other| *other == len).unwrap();
            let (users, films) = (of(400), of(300));
            assert!(!plan.goes_ahead(films, &[1, 1, 0, 0]), "nothing goes ahead on one host");
            let hosts = Hosts::even(2, 2, Link::of_network(0.0, 1.0));
            plan.ahead = Ahead::of(&plan.nest, &plan.choice.placement, &hosts);
            // Each worker has parts 0 and 1, or 2 and 3, at first, and the two others in its last tiles.
            let ahead = |worker, part, to| Ahead { worker, tile: 2, array: films, part, to };
            assert_eq!(plan.ahead, [ahead(1, 0, 0), ahead(0, 2, 1)]);
            // Where the first pass left them, and those that went ahead.
            assert!(plan.goes_ahead(films, &[1, 1, 0, 0]) && plan.goes_ahead(films, &[0, 1, 1, 0]));
            let rests = |owners: [Rank; 4]| [0, 1, 2, 3].map(|part| plan.rests(films, part, owners[part]));
            assert_eq!(rests([1, 1, 0, 0]), [0, 1, 1, 0]);
            // Where they were made, and where another loop left one of them.
            for elsewhere in [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 0]] {
                assert!(!plan.goes_ahead(films, &elsewhere), "{elsewhere:?}");
            }
            assert!(!plan.goes_ahead(users, &[0, 1]), "they do not go around");
            let goes = [users, films].map(|array| array == films);
            let after = |worker, tile| plan.ahead_after(worker, tile, &goes).collect::<Vec<_>>();
            assert_eq!((after(0, 1), after(0, 2), after(0, 3)), (vec![], vec![ahead(0, 2, 1)], vec![]));
            assert_eq!(plan.ahead_after(0, 2, &[false; 3]).count(), 0);
            Ok(())
        })
        .unwrap();
    }
}
