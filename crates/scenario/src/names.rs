//! Names of nodes, links and flows: their natural order, in which `l2` comes before `l10`.

use std::cmp::Ordering;

/// Compares with runs of digits as numbers; names that differ only in leading zeros are compared as text.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a.as_bytes(), b.as_bytes());
    while let (Some(p), Some(q)) = (x.first(), y.first()) {
        let order = if p.is_ascii_digit() && q.is_ascii_digit() {
            let (number, other) = (take_number(&mut x), take_number(&mut y));
            number.len().cmp(&other.len()).then(number.cmp(other))
        } else {
            (x, y) = (&x[1..], &y[1..]);
            p.cmp(q)
        };
        if order.is_ne() {
            return order;
        }
    }
    x.len().cmp(&y.len()).then(a.cmp(b))
}

/// Takes the digits at the start, and returns them without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    *text = rest;
    let zeros = number.iter().position(|digit| *digit != b'0').unwrap_or(number.len());
    &number[zeros..]
}

/// The index of `name` in names that are in natural order.
pub(crate) fn position<T>(sorted: &[T], name: &str, name_of: impl Fn(&T) -> &str) -> Option<usize> {
    sorted.binary_search_by(|item| natural(name_of(item), name)).ok()
}

#[cfg(test)]
mod tests {
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_in_names_count() {
        let mut names = ["l10", "l2", "r1", "l1-left", "l1", "l02", "l", "bulk.9", "bulk.10"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["bulk.9", "bulk.10", "l", "l1", "l1-left", "l02", "l2", "l10", "r1"]);
        assert_eq!(position(&names, "l10", |name| name), Some(7));
        assert_eq!(position(&names, "l11", |name| name), None);
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn the_order_is_total(a in "[a1-30.]{0,5}", b in "[a1-30.]{0,5}", c in "[a1-30.]{0,5}") {
            prop_assert_eq!(natural(&a, &b), natural(&b, &a).reverse());
            prop_assert_eq!(natural(&a, &b).is_eq(), a == b);
            if natural(&a, &b).is_le() && natural(&b, &c).is_le() {
                prop_assert!(natural(&a, &c).is_le());
            }
        }
    }
}
