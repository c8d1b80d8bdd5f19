//! Dominators, post-dominators and dominance frontiers.
//!
//! Invariant: `a` dominates `b` if and only if every path from the entry to `b` contains `a`; `a`
//! post-dominates `b` if and only if every path from `b` to an end contains `a`. Unreachable nodes dominate
//! nothing and are not dominated. The algorithm is that of Lengauer and Tarjan ("A fast algorithm for finding
//! dominators in a flowgraph", TOPLAS 1979, the simple version), without recursion, in `O(edges log nodes)`.
//!
//! Endless loops have no end. Each set of nodes that reaches no end gets one: an edge from its last node (in
//! block order, the last latch of the endless loop) to the common end. So every node has a post-dominator.
//! For a node that can reach no endless loop it is the usual one.

use crate::ir::graph::{DepthFirst, Graph, NONE, Tree};

/// The dominator tree of a graph.
#[derive(Clone, Debug)]
pub struct Dominators {
    reached: Vec<bool>,
    idom: Vec<usize>,
    tree: Tree,
}

impl Dominators {
    /// Computes the dominators of the nodes that are reachable from node 0.
    pub fn new(graph: &Graph) -> Self {
        let walk = DepthFirst::new(graph);
        let idom = lengauer_tarjan(graph, &walk);
        let parents = idom.iter().map(|&d| if d == NONE { 0 } else { d }).collect();
        // A dominator is an ancestor in the depth-first tree, so it precedes the node in preorder.
        let tree = if graph.is_empty() {
            Tree::new(vec![0], 0, std::iter::empty())
        } else {
            Tree::new(parents, 0, walk.preorder.iter().copied().skip(1))
        };
        Self { reached: (0..graph.len()).map(|v| walk.reached(v)).collect(), idom, tree }
    }

    /// The immediate dominator; `None` for the entry and for unreachable nodes.
    pub fn immediate(&self, v: usize) -> Option<usize> {
        Some(self.idom[v]).filter(|&d| d != NONE)
    }

    /// Whether `a` dominates `b`. Each reachable node dominates itself.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        self.reached[a] && self.reached[b] && self.tree.is_ancestor(a, b)
    }

    /// The lowest common dominator of both.
    pub fn common(&self, a: usize, b: usize) -> Option<usize> {
        (self.reached[a] && self.reached[b]).then(|| self.tree.common_ancestor(a, b))
    }

    /// The dominance frontiers of all nodes, ascending, without duplicates.
    ///
    /// Their size can be quadratic in the number of nodes.
    pub fn frontiers(&self, graph: &Graph) -> Vec<Vec<usize>> {
        let mut frontiers = vec![Vec::new(); graph.len()];
        for v in (0..graph.len()).filter(|&v| self.reached[v]) {
            for &p in graph.preds(v).iter().filter(|&&p| self.reached[p]) {
                let mut runner = p;
                while Some(runner) != self.immediate(v) {
                    if frontiers[runner].last() == Some(&v) {
                        break;
                    }
                    frontiers[runner].push(v);
                    match self.immediate(runner) {
                        Some(up) => runner = up,
                        None => break,
                    }
                }
            }
        }
        frontiers
    }
}

/// The post-dominator tree of a graph, over its nodes and one common end.
#[derive(Clone, Debug)]
pub struct PostDominators {
    reversed: Dominators,
}

impl PostDominators {
    /// Computes the post-dominators. Nodes without successors are ends; see the module documentation for
    /// endless loops.
    pub fn new(graph: &Graph) -> Self {
        Self { reversed: Dominators::new(&reverse(graph)) }
    }

    /// The immediate post-dominator; `None` if it is the common end.
    pub fn immediate(&self, v: usize) -> Option<usize> {
        self.reversed.immediate(v + 1).and_then(|p| p.checked_sub(1))
    }

    /// Whether `a` post-dominates `b`. Each node post-dominates itself.
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        self.reversed.dominates(a + 1, b + 1)
    }

    /// The post-dominance frontier of each node: the nodes on whose branches it depends.
    pub fn frontiers(&self, graph: &Graph) -> Vec<Vec<usize>> {
        let mut frontiers = self.reversed.frontiers(&reverse(graph));
        frontiers.remove(0);
        for frontier in &mut frontiers {
            frontier.retain(|&v| v != 0);
            frontier.iter_mut().for_each(|v| *v -= 1);
        }
        frontiers
    }
}

/// The reversed graph: the common end is node 0, node `v` is `v + 1`.
fn reverse(graph: &Graph) -> Graph {
    let mut edges: Vec<(usize, usize)> = graph.edges().map(|(from, to)| (to + 1, from + 1)).collect();
    let mut ends = vec![false; graph.len()];
    let mut work = Vec::new();
    let mark = |v: usize, ends: &mut Vec<bool>, work: &mut Vec<usize>| {
        work.push(v);
        while let Some(v) = work.pop() {
            if !std::mem::replace(&mut ends[v], true) {
                work.extend(graph.preds(v));
            }
        }
    };
    for v in (0..graph.len()).filter(|&v| graph.succs(v).is_empty()) {
        edges.push((0, v + 1));
        mark(v, &mut ends, &mut work);
    }
    for v in (0..graph.len()).rev() {
        if !ends[v] {
            edges.push((0, v + 1));
            mark(v, &mut ends, &mut work);
        }
    }
    Graph::new(graph.len() + 1, &edges)
}

/// Immediate dominators; [`NONE`] for the entry and unreachable nodes.
fn lengauer_tarjan(graph: &Graph, walk: &DepthFirst) -> Vec<usize> {
    // In this function nodes are preorder numbers.
    let n = walk.preorder.len();
    let mut semi: Vec<usize> = (0..n).collect();
    let mut idom = vec![0; n];
    let mut bucket: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut links = Links { ancestor: vec![NONE; n], label: (0..n).collect(), path: Vec::new() };
    let parent = |w: usize| walk.number[walk.parent[walk.preorder[w]]];
    for w in (1..n).rev() {
        for &p in graph.preds(walk.preorder[w]).iter().filter(|&&p| walk.reached(p)) {
            let u = links.eval(walk.number[p], &semi);
            semi[w] = semi[w].min(semi[u]);
        }
        bucket[semi[w]].push(w);
        let p = parent(w);
        links.ancestor[w] = p;
        for v in std::mem::take(&mut bucket[p]) {
            let u = links.eval(v, &semi);
            idom[v] = if semi[u] < semi[v] { u } else { p };
        }
    }
    for w in 1..n {
        if idom[w] != semi[w] {
            idom[w] = idom[idom[w]];
        }
    }
    let mut result = vec![NONE; graph.len()];
    for w in 1..n {
        result[walk.preorder[w]] = walk.preorder[idom[w]];
    }
    result
}

/// The forest of Lengauer and Tarjan's `link` and `eval`, with path compression.
struct Links {
    ancestor: Vec<usize>,
    label: Vec<usize>,
    path: Vec<usize>,
}

impl Links {
    fn eval(&mut self, v: usize, semi: &[usize]) -> usize {
        if self.ancestor[v] == NONE {
            return v;
        }
        let mut u = v;
        while self.ancestor[self.ancestor[u]] != NONE {
            self.path.push(u);
            u = self.ancestor[u];
        }
        while let Some(u) = self.path.pop() {
            let a = self.ancestor[u];
            if semi[self.label[a]] < semi[self.label[u]] {
                self.label[u] = self.label[a];
            }
            self.ancestor[u] = self.ancestor[a];
        }
        self.label[v]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::graph::random;

    /// Whether some path from `from` reaches one of `to` without `without`.
    fn path(graph: &Graph, from: usize, to: &[usize], without: usize) -> bool {
        let mut seen = vec![false; graph.len()];
        let mut work = vec![from];
        while let Some(v) = work.pop() {
            if v == without || std::mem::replace(&mut seen[v], true) {
                continue;
            }
            if to.contains(&v) {
                return true;
            }
            work.extend(graph.succs(v));
        }
        false
    }

    fn some_graph(seed: u64) -> Graph {
        if seed.is_multiple_of(3) { random::structured(seed, 25) } else { random::graph(seed, 25) }
    }

    #[test]
    fn dominators_are_what_removal_cuts_off() {
        for seed in 0..600 {
            let graph = some_graph(seed);
            let dom = Dominators::new(&graph);
            for b in 0..graph.len() {
                let mut proper: Vec<usize> = Vec::new();
                for a in 0..graph.len() {
                    let cut = !path(&graph, 0, &[b], a);
                    assert_eq!(dom.dominates(a, b), cut, "seed {seed}: {a} dom {b}");
                    if cut && a != b {
                        proper.push(a);
                    }
                }
                // The immediate dominator is dominated by all other proper dominators.
                let immediate = proper
                    .iter()
                    .copied()
                    .find(|&d| proper.iter().all(|&a| a == d || !path(&graph, 0, &[d], a)));
                assert_eq!(dom.immediate(b), immediate, "seed {seed}: idom of {b}");
            }
        }
    }

    #[test]
    fn post_dominators_are_what_removal_cuts_off_from_the_ends() {
        for seed in 0..600 {
            let graph = some_graph(seed);
            let ends: Vec<usize> = (0..graph.len()).filter(|&v| graph.succs(v).is_empty()).collect();
            if (0..graph.len()).any(|v| !path(&graph, v, &ends, NONE)) {
                continue; // endless loops: next test
            }
            let post = PostDominators::new(&graph);
            for b in 0..graph.len() {
                for a in 0..graph.len() {
                    assert_eq!(post.dominates(a, b), !path(&graph, b, &ends, a), "seed {seed}: {a} pdom {b}");
                }
            }
        }
    }

    #[test]
    fn endless_loops_have_post_dominators() {
        // 0 -> 1 -> 2 -> 1, endless; 2 is given the end.
        let post = PostDominators::new(&Graph::new(3, &[(0, 1), (1, 2), (2, 1)]));
        assert_eq!([post.immediate(0), post.immediate(1), post.immediate(2)], [Some(1), Some(2), None]);
        // 0 -> 1 | 2; 1 endless, 2 ends.
        let post = PostDominators::new(&Graph::new(3, &[(0, 1), (0, 2), (1, 1)]));
        assert_eq!([post.immediate(0), post.immediate(1), post.immediate(2)], [None, None, None]);
    }

    #[test]
    fn frontiers_follow_their_definition() {
        for seed in 0..200 {
            let graph = some_graph(seed);
            let dom = Dominators::new(&graph);
            for (a, frontier) in dom.frontiers(&graph).iter().enumerate() {
                let expected: Vec<usize> = (0..graph.len())
                    .filter(|&v| {
                        graph.preds(v).iter().any(|&p| dom.dominates(a, p))
                            && (a == v || !dom.dominates(a, v))
                    })
                    .collect();
                assert_eq!(*frontier, expected, "seed {seed}: frontier of {a}");
            }
        }
    }

    #[test]
    fn control_dependence_of_a_branch_and_a_loop() {
        // 0: if -> 1 else 2; 1 -> 2; 2: do -> 2 or 3.
        let graph = Graph::new(4, &[(0, 1), (0, 2), (1, 2), (2, 2), (2, 3)]);
        let post = PostDominators::new(&graph);
        assert_eq!(post.frontiers(&graph), [vec![], vec![0], vec![2], vec![]]);
        assert_eq!(post.immediate(0), Some(2));
    }

    #[test]
    fn unreachable_nodes_are_outside() {
        let graph = Graph::new(4, &[(0, 1), (2, 1), (2, 3)]);
        let dom = Dominators::new(&graph);
        assert_eq!(dom.immediate(1), Some(0));
        assert_eq!(dom.immediate(3), None);
        assert!(!dom.dominates(2, 3) && !dom.dominates(2, 2));
        assert!(Dominators::new(&Graph::new(0, &[])).idom.is_empty());
    }
}
