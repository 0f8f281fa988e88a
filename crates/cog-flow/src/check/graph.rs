//! Checks the graph of calls: no path leads back, and none is too long. The search takes linear time, without recursion.

use cog_module::Rule;
use cog_spec::Code;

use super::LoadedPlan;
use crate::Finding;

/// The maximum number of modules of a path that a message lists.
const MAX_SHOWN: usize = 40;

/// Returns the cycles, and the paths that are longer than a `max_depth`.
pub(super) fn check(plans: &[LoadedPlan]) -> Vec<Finding> {
    let mut successors: Vec<Vec<usize>> = Vec::new();
    for loaded in plans {
        let called = loaded.plan.parts.iter().filter_map(|part| part.plan);
        successors.push(called.map(|id| id.index()).collect());
    }
    let graph = Graph::new(&successors);
    let search = graph.search();
    let mut findings: Vec<Finding> =
        search.cycles.iter().filter_map(|cycle| cycle_finding(plans, cycle)).collect();
    for (index, loaded) in plans.iter().enumerate() {
        let max = usize::try_from(loaded.plan.max_depth).unwrap_or(usize::MAX);
        if search.heights.get(index).is_some_and(|height| *height > max) {
            let path = graph.deepest_path(index, &search.heights);
            findings.extend(depth_finding(plans, &path, max));
            // The callers of this module are at least as deep; one finding is enough.
            break;
        }
    }
    findings
}

fn cycle_finding(plans: &[LoadedPlan], cycle: &[usize]) -> Option<Finding> {
    let last = plans.get(*cycle.last()?)?;
    let first = *cycle.first()?;
    let location = location_of(last, first)?;
    let path: Vec<usize> = cycle.iter().chain([&first]).copied().collect();
    let message = format!("modules call each other in a cycle: {}", names(plans, &path));
    let finding = Finding::error(Rule::CompositionCycle, location, message).code(Code::CircularDependency);
    let help = "Remove one of these calls, or move the common part into a module that calls no other.";
    Some(finding.suggest(help).about(&last.plan.module))
}

fn depth_finding(plans: &[LoadedPlan], path: &[usize], max: usize) -> Option<Finding> {
    let from = plans.get(*path.first()?)?;
    let next = *path.get(1)?;
    let location = location_of(from, next)?;
    let names = names(plans, path);
    let message =
        format!("{} modules call each other in a row, but `max_depth` is {max}: {names}", path.len());
    let finding = Finding::error(Rule::CompositionDepth, location, message).code(Code::MaxDepthExceeded);
    let help = "Flatten the composition, or raise `composition.max_depth` (at most 32).";
    Some(finding.suggest(help).about(&from.plan.module))
}

/// Returns where a module names another one.
fn location_of(caller: &LoadedPlan, called: usize) -> Option<crate::finding::FindingLocation> {
    let mut parts = caller.plan.parts.iter();
    let part = parts.position(|part| part.plan.is_some_and(|id| id.index() == called))?;
    caller.locations.get(part).cloned()
}

fn names(plans: &[LoadedPlan], path: &[usize]) -> String {
    let shown = path.iter().take(MAX_SHOWN).filter_map(|index| plans.get(*index));
    let shown: Vec<&str> = shown.map(|loaded| loaded.plan.module.manifest.name.as_str()).collect();
    let more = path.len().saturating_sub(MAX_SHOWN);
    let rest = if more > 0 { format!(" → … ({more} more)") } else { String::new() };
    shown.join(" → ") + &rest
}

/// A graph: the successors of each node, by index.
struct Graph<'a> {
    successors: &'a [Vec<usize>],
}

/// What a search found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Search {
    /// The cycles: one for each edge that leads back. The nodes of a cycle, the first one once.
    cycles: Vec<Vec<usize>>,
    /// The maximum number of nodes on a path from each node, without the edges that lead back.
    heights: Vec<usize>,
}

/// The state of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// On the path from the start, at this position.
    Open(usize),
    Done,
}

/// The maximum number of cycles that are reported.
const MAX_CYCLES: usize = 20;

impl<'a> Graph<'a> {
    const fn new(successors: &'a [Vec<usize>]) -> Self {
        Self { successors }
    }

    /// Searches from the first node. Nodes that it does not reach have the height 0.
    fn search(&self) -> Search {
        let mut search = Search { cycles: Vec::new(), heights: vec![0; self.successors.len()] };
        let mut states = vec![State::New; self.successors.len()];
        // The path from the start: each node, and the index of its next successor. It takes the place of a recursion, which a long
        // chain of modules would let overflow the stack.
        let mut path: Vec<(usize, usize)> = Vec::new();
        self.enter(0, &mut path, &mut states);
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            let index = *next;
            *next += 1;
            match self.successor(node, index) {
                Some(successor) => match states.get(successor) {
                    Some(State::New) => self.enter(successor, &mut path, &mut states),
                    Some(State::Open(start)) => search.add_cycle(path.get(*start..).unwrap_or_default()),
                    Some(State::Done) | None => {}
                },
                None => {
                    path.pop();
                    set(&mut states, node, State::Done);
                    let below = self.height_below(node, &states, &search.heights);
                    set(&mut search.heights, node, below + 1);
                }
            }
        }
        search
    }

    /// Returns the longest path from a node, by the heights of a search.
    fn deepest_path(&self, from: usize, heights: &[usize]) -> Vec<usize> {
        std::iter::successors(Some(from), |node| {
            // Each node of a deepest path is one lower than the node before it; the last has the height 1.
            let height = heights.get(*node)?.checked_sub(1)?;
            let mut below = self.successors.get(*node)?.iter().copied();
            below.find(|below| heights.get(*below) == Some(&height))
        })
        .collect()
    }

    fn enter(&self, node: usize, path: &mut Vec<(usize, usize)>, states: &mut [State]) {
        if node < self.successors.len() {
            set(states, node, State::Open(path.len()));
            path.push((node, 0));
        }
    }

    fn successor(&self, node: usize, index: usize) -> Option<usize> {
        self.successors.get(node)?.get(index).copied()
    }

    /// Returns the greatest height of the successors that are done; the others lead back.
    fn height_below(&self, node: usize, states: &[State], heights: &[usize]) -> usize {
        let successors = self.successors.get(node).into_iter().flatten();
        let done = successors.filter(|successor| states.get(**successor) == Some(&State::Done));
        done.filter_map(|successor| heights.get(*successor)).max().copied().unwrap_or_default()
    }
}

impl Search {
    fn add_cycle(&mut self, path: &[(usize, usize)]) {
        if self.cycles.len() < MAX_CYCLES {
            self.cycles.push(path.iter().map(|(node, _)| *node).collect());
        }
    }
}

fn set<T>(list: &mut [T], index: usize, value: T) {
    if let Some(slot) = list.get_mut(index) {
        *slot = value;
    }
}

#[cfg(test)]
mod tests {
    use petgraph::{algo::is_cyclic_directed, graph::DiGraph};
    use proptest::prelude::*;

    use super::*;

    fn search(successors: &[&[usize]]) -> Search {
        let successors: Vec<Vec<usize>> = successors.iter().map(|list| list.to_vec()).collect();
        Graph::new(&successors).search()
    }

    #[test]
    fn cycle_has_its_complete_path() {
        let found = search(&[&[1], &[2, 3], &[1], &[0]]);
        assert_eq!(found.cycles, [vec![1, 2], vec![0, 1, 3]]);
        assert_eq!(search(&[&[0]]).cycles, [vec![0]]);
    }

    #[test]
    fn shared_node_is_not_a_cycle() {
        let found = search(&[&[1, 2], &[3], &[3], &[]]);
        assert_eq!(found, Search { cycles: Vec::new(), heights: vec![3, 2, 2, 1] });
    }

    #[test]
    fn deepest_path_is_as_long_as_the_height() {
        let successors: Vec<Vec<usize>> =
            [&[3, 1][..], &[2], &[3], &[]].iter().map(|list| list.to_vec()).collect();
        let graph = Graph::new(&successors);
        let heights = graph.search().heights;
        assert_eq!((graph.deepest_path(0, &heights), heights), (vec![0, 1, 2, 3], vec![4, 3, 2, 1]));
    }

    #[test]
    fn long_chain_does_not_exhaust_the_stack() {
        let successors: Vec<Vec<usize>> = (1..=200_000).map(|next| vec![next]).chain([vec![]]).collect();
        assert_eq!(Graph::new(&successors).search().heights[0], 200_001);
    }

    /// Returns the longest path from a node of a graph without cycles.
    fn height(successors: &[Vec<usize>], node: usize) -> usize {
        successors[node].iter().map(|next| height(successors, *next)).max().unwrap_or_default() + 1
    }

    proptest! {
        #[test]
        fn finds_a_cycle_exactly_if_there_is_one(
            successors in (1_usize..12).prop_flat_map(|nodes| {
                prop::collection::vec(prop::collection::vec(0..nodes, 0..4), nodes)
            })
        ) {
            let graph = Graph::new(&successors);
            let found = graph.search();
            // Only nodes that the first one reaches are searched.
            let reached = |node: usize| found.heights[node] > 0;
            let edges = successors.iter().enumerate().filter(|(node, _)| reached(*node));
            let edges = edges.flat_map(|(node, next)| next.iter().map(move |next| (node as u32, *next as u32)));
            let all = DiGraph::<(), ()>::from_edges(edges.collect::<Vec<_>>());
            prop_assert_eq!(!found.cycles.is_empty(), is_cyclic_directed(&all));
            for cycle in &found.cycles {
                let steps = cycle.iter().zip(cycle.iter().skip(1).chain(cycle.first()));
                for (from, to) in steps {
                    prop_assert!(successors[*from].contains(to));
                }
            }
            if found.cycles.is_empty() {
                prop_assert_eq!(found.heights[0], height(&successors, 0));
                prop_assert_eq!(graph.deepest_path(0, &found.heights).len(), found.heights[0]);
            }
        }
    }
}
