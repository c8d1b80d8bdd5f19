//! The order of blocks: loops are contiguous, and their exits follow them.
//!
//! Invariant: [`block_order`] contains every reachable node once, the entry first. Every edge goes forward,
//! except edges from inside a loop to its header. The nodes of a loop are contiguous, its header first. So it
//! is a reverse postorder, and running the lowest pending block first reconverges lanes where immediate
//! post-dominators would: all blocks on forward paths between a branch and its post-dominator lie between
//! them in the order, including whole loops.
//!
//! Loops are defined for every graph by one depth-first walk: the loop of `h` consists of the descendants of
//! `h` in the depth-first tree that reach `h` through descendants of `h`. On a reducible graph these are the
//! natural loops, merged if they share a header. On an irreducible graph the header is the node that the walk
//! visits first, and other entries jump into the middle. Any cycle lies in the loop of its first visited
//! node. So within a loop, without edges to its header and with inner loops contracted to one node, the graph
//! is acyclic and can be sorted. The forest is computed with disjoint sets; edges become active at the lowest
//! common ancestor of their ends (after Ramalingam, "Identifying loops in almost linear time", TOPLAS 1999).
//!
//! Among all such orders, the one closest to the text is chosen, so that listings are readable and the result
//! is stable.

use super::graph::{DepthFirst, DisjointSets, Graph, NONE, Tree};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The loops of a graph, nested.
#[derive(Clone, Debug)]
pub struct LoopForest {
    /// For each node, the header of the innermost loop that contains it and of which it is not the header;
    /// [`NONE`] if there is none.
    pub within: Vec<usize>,
    /// Whether the node is the header of a loop.
    pub header: Vec<bool>,
    /// For a header: whether its loop has another entry.
    pub irreducible: Vec<bool>,
}

impl LoopForest {
    /// Finds the loops of the nodes that are reachable from the entry.
    pub fn new(graph: &Graph, walk: &DepthFirst) -> Self {
        let len = graph.len();
        let mut forest =
            Self { within: vec![NONE; len], header: vec![false; len], irreducible: vec![false; len] };
        if len == 0 {
            return forest;
        }
        let tree = Tree::new(walk.parent.clone(), 0, walk.preorder.iter().copied().skip(1));
        let mut active_at: Vec<Vec<(usize, usize)>> = vec![Vec::new(); len];
        for (from, to) in graph.edges().filter(|&(from, _)| walk.reached(from)) {
            active_at[tree.common_ancestor(from, to)].push((from, to));
        }
        let mut sets = DisjointSets::new(len);
        let mut preds: Vec<Vec<usize>> = vec![Vec::new(); len];
        let mut in_body = vec![NONE; len];
        for &h in walk.preorder.iter().rev() {
            let mut body = Vec::new();
            for &(from, to) in &active_at[h] {
                if to == h {
                    forest.header[h] = true;
                    let from = sets.find(from);
                    if from != h && in_body[from] != h {
                        in_body[from] = h;
                        body.push(from);
                    }
                } else {
                    let into = sets.find(to);
                    preds[into].push(from);
                }
            }
            let mut next = 0;
            while let Some(&v) = body.get(next) {
                next += 1;
                for from in std::mem::take(&mut preds[v]) {
                    let from = sets.find(from);
                    if from != h && in_body[from] != h {
                        in_body[from] = h;
                        body.push(from);
                    }
                }
            }
            for &v in &body {
                forest.within[v] = h;
                sets.put(v, h);
            }
        }
        forest.mark_irreducible(graph, walk);
        forest
    }

    /// A loop is irreducible if an edge from outside enters it elsewhere than at its header.
    fn mark_irreducible(&mut self, graph: &Graph, walk: &DepthFirst) {
        let tree = self.tree(walk);
        // The sets skip marked nodes.
        let mut unmarked = DisjointSets::new(self.within.len() + 1);
        for (from, to) in graph.edges().filter(|&(from, _)| walk.reached(from)) {
            let common = tree.common_ancestor(from, to);
            if common == to {
                continue;
            }
            let mut h = unmarked.find(tree.parent(to));
            while tree.depth(h) > tree.depth(common) {
                self.irreducible[h] = true;
                unmarked.put(h, tree.parent(h));
                h = unmarked.find(h);
            }
        }
    }

    /// The forest as a tree over the nodes: a header is the parent of its loop's nodes, and an additional
    /// node is the root.
    fn tree(&self, walk: &DepthFirst) -> Tree {
        let top = self.within.len();
        let mut parent: Vec<usize> = self.within.iter().map(|&h| if h == NONE { top } else { h }).collect();
        parent.push(top);
        // A header precedes its loop in preorder.
        Tree::new(parent, top, walk.preorder.iter().copied())
    }

    /// The number of loops that contain the node, including its own if it is a header.
    pub fn depth(&self, mut v: usize) -> usize {
        let mut depth = usize::from(self.header[v]);
        while self.within[v] != NONE {
            v = self.within[v];
            depth += 1;
        }
        depth
    }
}

/// The reachable nodes in the order that the module documentation defines; ties are broken by the lower node.
pub fn block_order(graph: &Graph) -> Vec<usize> {
    let walk = DepthFirst::new(graph);
    let forest = LoopForest::new(graph, &walk);
    let tree = forest.tree(&walk);
    let len = graph.len();
    let top = len;

    // Constraints between siblings of the loop tree.
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); len];
    let mut waits = vec![0usize; len];
    for (from, to) in graph.edges().filter(|&(from, _)| walk.reached(from)) {
        let common = tree.common_ancestor(from, to);
        if common == from || common == to {
            continue; // from a header into its loop, or a back edge
        }
        let depth = tree.depth(common) + 1;
        let (a, b) = (tree.ancestor_at(from, depth), tree.ancestor_at(to, depth));
        before[a].push(b);
        waits[b] += 1;
    }

    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); len + 1];
    for &v in &walk.preorder {
        inside[tree.parent(v)].push(v);
    }

    let mut order = Vec::with_capacity(walk.preorder.len());
    let mut stack = vec![top];
    while let Some(v) = stack.pop() {
        if v != top {
            order.push(v);
        }
        let mut ready: BinaryHeap<Reverse<usize>> =
            inside[v].iter().filter(|&&w| waits[w] == 0).map(|&w| Reverse(w)).collect();
        let mut sorted = Vec::with_capacity(inside[v].len());
        while let Some(Reverse(w)) = ready.pop() {
            sorted.push(w);
            for &after in &before[w] {
                waits[after] -= 1;
                if waits[after] == 0 {
                    ready.push(Reverse(after));
                }
            }
        }
        debug_assert_eq!(sorted.len(), inside[v].len(), "ptxvm bug: a loop's inside has a cycle");
        stack.extend(sorted.into_iter().rev());
    }
    order
}

#[cfg(test)]
mod tests {
    use super::super::graph::random;
    use super::*;

    /// Nodes reachable from `from` without passing `without`.
    fn reach(graph: &Graph, from: usize, without: Option<usize>) -> Vec<bool> {
        let mut seen = vec![false; graph.len()];
        let mut work = vec![from];
        while let Some(v) = work.pop() {
            if Some(v) != without && !std::mem::replace(&mut seen[v], true) {
                work.extend(graph.succs(v));
            }
        }
        seen
    }

    /// `dom[v][d]`: without `d`, `v` is unreachable from the entry.
    fn dominators(graph: &Graph) -> Vec<Vec<bool>> {
        let n = graph.len();
        let reached: Vec<Vec<bool>> = (0..n).map(|d| reach(graph, 0, Some(d))).collect();
        (0..n).map(|v| (0..n).map(|d| !reached[d][v]).collect()).collect()
    }

    /// Natural loops by definition: for each edge to a dominator, the nodes that reach its source without the
    /// header.
    fn natural_loops(graph: &Graph) -> Vec<(usize, Vec<bool>)> {
        let dom = dominators(graph);
        let mut loops: Vec<(usize, Vec<bool>)> = Vec::new();
        for (from, to) in graph.edges() {
            if !dom[from][to] {
                continue;
            }
            let mut body = vec![false; graph.len()];
            body[to] = true;
            let mut work = vec![from];
            while let Some(v) = work.pop() {
                if !std::mem::replace(&mut body[v], true) {
                    work.extend(graph.preds(v));
                }
            }
            match loops.iter_mut().find(|(h, _)| *h == to) {
                Some((_, all)) => all.iter_mut().zip(body).for_each(|(a, b)| *a |= b),
                None => loops.push((to, body)),
            }
        }
        loops
    }

    fn positions(order: &[usize], n: usize) -> Vec<usize> {
        let mut at = vec![NONE; n];
        for (i, &v) in order.iter().enumerate() {
            assert_eq!(at[v], NONE, "{v} comes twice");
            at[v] = i;
        }
        at
    }

    fn check_forward(graph: &Graph, seed: u64) {
        let order = block_order(graph);
        assert_eq!(order.len(), graph.len(), "seed {seed}");
        assert_eq!(order[0], 0);
        let at = positions(&order, graph.len());
        let walk = DepthFirst::new(graph);
        let forest = LoopForest::new(graph, &walk);
        let tree = forest.tree(&walk);
        for (from, to) in graph.edges() {
            if at[from] >= at[to] {
                assert!(forest.header[to] && tree.is_ancestor(to, from), "seed {seed}: {from} -> {to}");
            }
        }
        // Every loop of the forest is contiguous, header first, and strongly connected.
        for h in (0..graph.len()).filter(|&h| forest.header[h]) {
            let body: Vec<usize> = (0..graph.len()).filter(|&v| tree.is_ancestor(h, v)).collect();
            let span: Vec<usize> = body.iter().map(|&v| at[v]).collect();
            assert_eq!(span.iter().min(), Some(&at[h]), "seed {seed}: header {h} first");
            assert_eq!(span.iter().max(), Some(&(at[h] + body.len() - 1)), "seed {seed}: {h} contiguous");
            for &v in &body {
                assert!(reach(graph, v, None)[h] && reach(graph, h, None)[v], "seed {seed}");
            }
        }
    }

    #[test]
    fn edges_go_forward_except_to_headers_on_any_graph() {
        for seed in 0..3000 {
            check_forward(&random::graph(seed, 14), seed);
        }
        for seed in 0..100 {
            check_forward(&random::graph(seed, 80), seed);
        }
    }

    #[test]
    fn loops_are_natural_and_contiguous_on_structured_graphs() {
        for seed in 0..1000 {
            let graph = random::structured(seed, 30);
            check_forward(&graph, seed);
            let at = positions(&block_order(&graph), graph.len());
            let walk = DepthFirst::new(&graph);
            let forest = LoopForest::new(&graph, &walk);
            let tree = forest.tree(&walk);
            let natural = natural_loops(&graph);
            assert_eq!(natural.len(), forest.header.iter().filter(|h| **h).count(), "seed {seed}");
            for (h, body) in natural {
                assert!(forest.header[h] && !forest.irreducible[h], "seed {seed}");
                for (v, inside) in body.iter().enumerate() {
                    assert_eq!(*inside, tree.is_ancestor(h, v), "seed {seed}: {v} in the loop of {h}");
                }
                let last = (0..graph.len()).filter(|&v| body[v]).map(|v| at[v]).max().expect("the header");
                for (from, to) in graph.edges() {
                    if body[from] && !body[to] {
                        assert!(at[to] > last, "seed {seed}: exit {from} -> {to}");
                    }
                }
            }
        }
    }

    /// The immediate post-dominator of a branch comes after all blocks on forward paths between them.
    #[test]
    fn branches_join_at_their_post_dominator() {
        let mut joins = 0;
        for seed in 0..1500 {
            let graph = if seed % 2 == 0 { random::structured(seed, 20) } else { random::graph(seed, 12) };
            let at = positions(&block_order(&graph), graph.len());
            let exits: Vec<usize> = (0..graph.len()).filter(|&v| graph.succs(v).is_empty()).collect();
            for b in (0..graph.len()).filter(|&b| graph.succs(b).len() > 1) {
                let from_b = reach(&graph, b, None);
                if !exits.iter().any(|&e| from_b[e]) {
                    continue;
                }
                let post: Vec<usize> = (0..graph.len())
                    .filter(|&p| p != b && at[p] > at[b])
                    .filter(|&p| {
                        let around = reach(&graph, b, Some(p));
                        !exits.iter().any(|&e| around[e])
                    })
                    .collect();
                let forward: Vec<(usize, usize)> = graph.edges().filter(|&(f, t)| at[f] < at[t]).collect();
                let forward = Graph::new(graph.len(), &forward);
                for p in post {
                    let between = reach(&forward, b, Some(p));
                    for v in (0..graph.len()).filter(|&v| v != b && between[v] && reach(&forward, v, None)[p])
                    {
                        joins += 1;
                        assert!(at[b] < at[v] && at[v] < at[p], "seed {seed}: {b} .. {v} .. {p}");
                    }
                }
            }
        }
        assert!(joins > 1000);
    }

    #[test]
    fn order_stays_near_the_text() {
        // if (0) 1 else 2; 3; do 4 while; 5
        let g = Graph::new(6, &[(0, 2), (0, 1), (1, 3), (2, 3), (3, 4), (4, 4), (4, 5)]);
        assert_eq!(block_order(&g), [0, 1, 2, 3, 4, 5]);
        // A loop whose exit precedes its body in the text: 0 -> 1 (header) -> {2 exit, 3 body}, 3 -> 1.
        let g = Graph::new(4, &[(0, 1), (1, 2), (1, 3), (3, 1)]);
        assert_eq!(block_order(&g), [0, 1, 3, 2]);
    }

    #[test]
    fn unreachable_nodes_are_left_out() {
        let g = Graph::new(4, &[(0, 2), (1, 2), (3, 3)]);
        assert_eq!(block_order(&g), [0, 2]);
        assert_eq!(block_order(&Graph::new(0, &[])), Vec::<usize>::new());
    }

    #[test]
    fn deep_nests_and_long_chains_are_fast() {
        // 40,000 nested loops, and a ladder of cross edges.
        let n = 40_000;
        let mut edges: Vec<(usize, usize)> = (1..n).map(|v| (v - 1, v)).collect();
        edges.extend((1..n / 2).map(|v| (n - 1 - v, v)));
        let start = std::time::Instant::now();
        assert_eq!(block_order(&Graph::new(n, &edges)).len(), n);
        assert!(start.elapsed().as_secs() < 5);
    }
}
