//! Copying what two boxes of one array have in common.
use super::window::Window;
use std::ops::Range;

/// Copies the elements that lie in both boxes.
pub(crate) fn copy_box<T: Copy, const N: usize>(
    from: &Window<N>,
    source: &[T],
    to: &Window<N>,
    target: &mut [T],
) {
    let common: [Range<usize>; N] = std::array::from_fn(|dim| {
        let (a, b) = (from.range(dim), to.range(dim));
        a.start.max(b.start)..a.end.min(b.end)
    });
    if common.iter().any(|range| range.start >= range.end) {
        return;
    }
    let run = common[N - 1].len();
    let mut index: [usize; N] = std::array::from_fn(|dim| common[dim].start);
    loop {
        if let (Some(a), Some(b)) = (from.place(index), to.place(index)) {
            target[b..b + run].copy_from_slice(&source[a..a + run]);
        }
        // The next run: counts up through all dimensions but the last.
        let mut dim = N - 1;
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            index[dim] += 1;
            if index[dim] < common[dim].end {
                break;
            }
            index[dim] = common[dim].start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_cut_along_different_dimensions_exchange_what_they_share() {
        let shape = [5, 4, 3];
        let whole = Window::new(&shape, 0, &(0..5));
        let all: Vec<u32> = (0..60).collect();
        for dim in 0..3 {
            let part = Window::new(&shape, dim, &(1..3));
            let mut data = vec![u32::MAX; part.len()];
            copy_box(&whole, &all, &part, &mut data);
            assert!(data.iter().all(|element| *element != u32::MAX));
            let mut back = vec![u32::MAX; 60];
            copy_box(&part, &data, &whole, &mut back);
            for i in 0..5 {
                for j in 0..4 {
                    for k in 0..3 {
                        let place = whole.place([i, j, k]).unwrap();
                        let inside = (1..3).contains(&[i, j, k][dim]);
                        assert_eq!(back[place], if inside { all[place] } else { u32::MAX });
                    }
                }
            }
        }
    }
}
