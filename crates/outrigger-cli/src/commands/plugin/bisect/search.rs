//! The search of `outrigger plugin bisect`: delta debugging (Zeller's `ddmin`) over sets of plugins. Pure: the caller defines
//! a trial.

use std::collections::BTreeMap;

/// The result of a trial, from the exit code as for `git bisect run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// 0.
    Good,
    /// 125: undecided with these plugins.
    Skip,
    /// Any other exit.
    Bad,
}

/// The trials so far, so that none is repeated.
#[derive(Debug, Default)]
pub(super) struct Trials {
    known: BTreeMap<Vec<usize>, Verdict>,
}

impl Trials {
    /// Returns the verdict with only these plugins (in ascending order).
    ///
    /// # Errors
    /// Those of `trial`.
    pub(super) async fn of<E>(
        &mut self,
        set: &[usize],
        trial: &mut impl AsyncFnMut(&[usize]) -> Result<Verdict, E>,
    ) -> Result<Verdict, E> {
        if let Some(verdict) = self.known.get(set) {
            return Ok(*verdict);
        }
        let verdict = trial(set).await?;
        self.known.insert(set.to_vec(), verdict);
        Ok(verdict)
    }

    /// Returns whether a trial was undecided, so that a smaller set may have been missed.
    pub(super) fn unclear(&self) -> bool {
        self.known.values().any(|verdict| *verdict == Verdict::Skip)
    }

    /// Returns a minimal bad subset of a bad `set`: a single plugin for one culprit, two for two that only clash. Halves
    /// first, so that one among n takes about 2 log n trials; n squared in the worst case.
    ///
    /// # Errors
    /// Those of `trial`.
    pub(super) async fn smallest<E>(
        &mut self,
        set: Vec<usize>,
        trial: &mut impl AsyncFnMut(&[usize]) -> Result<Verdict, E>,
    ) -> Result<Vec<usize>, E> {
        let mut set = set;
        let mut pieces = 2;
        while set.len() > 1 {
            let size = set.len().div_ceil(pieces);
            match self.reduced(&set, size, trial).await? {
                Some((smaller, true)) => {
                    set = smaller;
                    pieces = 2;
                }
                Some((smaller, false)) => {
                    set = smaller;
                    pieces = (pieces - 1).max(2);
                }
                None if size == 1 => break,
                None => pieces = (pieces * 2).min(set.len()),
            }
        }
        Ok(set)
    }

    /// Returns a piece of this size that is bad alone (`true`), or what is left without one and still bad (`false`).
    async fn reduced<E>(
        &mut self,
        set: &[usize],
        size: usize,
        trial: &mut impl AsyncFnMut(&[usize]) -> Result<Verdict, E>,
    ) -> Result<Option<(Vec<usize>, bool)>, E> {
        for piece in set.chunks(size) {
            if self.of(piece, trial).await? == Verdict::Bad {
                return Ok(Some((piece.to_vec(), true)));
            }
        }
        for piece in set.chunks(size) {
            let rest: Vec<usize> = without(set, piece);
            if !rest.is_empty() && self.of(&rest, trial).await? == Verdict::Bad {
                return Ok(Some((rest, false)));
            }
        }
        Ok(None)
    }
}

/// Returns `set` without `piece`.
pub(super) fn without(set: &[usize], piece: &[usize]) -> Vec<usize> {
    set.iter()
        .filter(|one| !piece.contains(one))
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the search with trials that are bad if they contain one of these sets completely. Returns the result and the
    /// number of trials.
    fn found(all: usize, bad: &[Vec<usize>], skip: &[Vec<usize>]) -> (Vec<usize>, usize) {
        let mut count = 0;
        let mut trial = async |set: &[usize]| {
            count += 1;
            let has = |culprit: &Vec<usize>| culprit.iter().all(|one| set.contains(one));
            Ok::<_, ()>(if skip.iter().any(|one| one == set) {
                Verdict::Skip
            } else if bad.iter().any(has) {
                Verdict::Bad
            } else {
                Verdict::Good
            })
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let set = runtime
            .block_on(Trials::default().smallest((0..all).collect(), &mut trial))
            .unwrap();
        (set, count)
    }

    fn subsets(all: usize) -> impl Iterator<Item = Vec<usize>> {
        (1..1_usize << all).map(move |bits| (0..all).filter(|one| bits & (1 << one) != 0).collect())
    }

    #[test]
    fn every_culprit_set_among_up_to_six_is_found_exactly() {
        for all in 1..=6 {
            for culprit in subsets(all) {
                let (set, trials) = found(all, std::slice::from_ref(&culprit), &[]);
                assert_eq!(set, culprit, "of {all}");
                assert!(
                    trials <= all * all + 3 * all,
                    "{culprit:?} of {all}: {trials}"
                );
            }
        }
    }

    #[test]
    fn of_two_causes_one_is_found_and_nothing_of_it_can_be_left_out() {
        for one in subsets(5) {
            for other in subsets(5) {
                let causes = [one.clone(), other.clone()];
                let (set, _) = found(5, &causes, &[]);
                assert!(causes.contains(&set), "{causes:?}: {set:?}");
            }
        }
    }

    #[test]
    fn one_among_many_takes_few_trials() {
        for culprit in [0, 31, 63] {
            let (set, trials) = found(64, &[vec![culprit]], &[]);
            assert_eq!(set, [culprit]);
            assert!(trials <= 12, "{trials}");
        }
    }

    #[test]
    fn what_is_undecided_is_no_evidence() {
        // Alone it is undecided; the smallest set known to be bad includes a neighbour.
        let (set, _) = found(4, &[vec![2]], &[vec![2]]);
        assert!(set.contains(&2) && set.len() == 2, "{set:?}");
    }
}
