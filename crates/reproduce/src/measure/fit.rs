//! Straight lines through measurements.

/// Slope of the least-squares line through the origin, Σxy / Σx²; `None` if all `x` are zero.
#[must_use]
pub fn slope_through_origin(points: &[(f64, f64)]) -> Option<f64> {
    let squares: f64 = points.iter().map(|(x, _)| x * x).sum();
    (squares > 0.0).then(|| points.iter().map(|(x, y)| x * y).sum::<f64>() / squares)
}

/// R² of the line through the origin: 1 - Σ(y - slope x)² / Σ(y - mean)².
///
/// The total is about the mean, as for a line with an intercept: the fraction of the variance that
/// proportionality explains. R² is negative where a constant fits better. `None` without spread.
#[must_use]
pub fn r2_through_origin(points: &[(f64, f64)]) -> Option<f64> {
    let slope = slope_through_origin(points)?;
    let mean = points.iter().map(|(_, y)| y).sum::<f64>() / points.len() as f64;
    let residual: f64 = points.iter().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let total: f64 = points.iter().map(|(_, y)| (y - mean).powi(2)).sum();
    (total > 0.0).then(|| 1.0 - residual / total)
}

/// Maximum of |y / (slope x) - 1| among the quarter of points with the smallest `x`, at least one: small
/// flows can be far off without moving R².
#[must_use]
pub fn lowest_quartile_deviation(points: &[(f64, f64)]) -> Option<f64> {
    let slope = slope_through_origin(points).filter(|slope| *slope > 0.0)?;
    let mut points: Vec<_> = points.iter().filter(|(x, _)| *x > 0.0).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let quarter = points.len().div_ceil(4);
    points.iter().take(quarter).map(|(x, y)| (y / (slope * x) - 1.0).abs()).max_by(f64::total_cmp)
}

/// Slope of the least-squares line with intercept; `None` unless two `x` differ.
#[must_use]
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x_mean, y_mean) = (mean(|p| p.0), mean(|p| p.1));
    let squares: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let products: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    (squares > 0.0).then(|| products / squares)
}

/// Slope of the least-squares line with intercept through (ln x, ln y): the exponent of a power law. `None`
/// unless all are positive and two `x` differ.
#[must_use]
pub fn loglog_slope(points: &[(f64, f64)]) -> Option<f64> {
    if points.iter().any(|(x, y)| *x <= 0.0 || *y <= 0.0) {
        return None;
    }
    slope(&points.iter().map(|(x, y)| (x.ln(), y.ln())).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-12)
    }

    #[test]
    fn the_line_through_the_origin_has_the_worked_slope_and_r2() {
        // Points (1, 1), (2, 3), (3, 2): Σxy = 1 + 6 + 6 = 13, Σx² = 14. Residuals 1 - 13/14 = 1/14, 3 -
        // 26/14 = 16/14, 2 - 39/14 = -11/14: squares (1 + 256 + 121)/196 = 378/196. About the mean 2: 1 + 1
        // + 0 = 2.
        let points = [(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)];
        assert!(close(slope_through_origin(&points), 13.0 / 14.0));
        assert!(close(r2_through_origin(&points), 1.0 - 378.0 / 196.0 / 2.0));
    }

    #[test]
    fn equal_shares_are_not_proportional() {
        // All get 1 of x = 1, 2, 3: there is no variance to explain. A millionth more makes R² very negative.
        assert_eq!(r2_through_origin(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]), None);
        assert!(r2_through_origin(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.000_001)]).unwrap() < -1e6);
    }

    #[test]
    fn the_lowest_quartile_is_judged_by_itself() {
        // Eight points on y = x except the first, at half its share, which moves the slope to 203.5/204.
        let points: Vec<_> =
            (1..=8).map(|i| (f64::from(i), if i == 1 { 0.5 } else { f64::from(i) })).collect();
        assert!(close(lowest_quartile_deviation(&points), 1.0 - 0.5 / (203.5 / 204.0)));
    }

    #[test]
    fn a_line_with_intercept_has_the_worked_slope() {
        // (1, 5), (2, 4), (3, 9) about the means 2 and 6: (-1)(-1) + 0 (-2) + 1 (3) = 4, over 2.
        assert!(close(slope(&[(1.0, 5.0), (2.0, 4.0), (3.0, 9.0)]), 2.0));
        assert_eq!(slope(&[(1.0, 5.0), (1.0, 4.0)]), None);
    }

    #[test]
    fn a_power_law_gives_its_exponent() {
        let points: Vec<_> = [1.0, 2.0, 5.0].map(|x: f64| (x, 3.0 * x.powf(-0.6))).to_vec();
        assert!(close(loglog_slope(&points), -0.6));
        assert_eq!(loglog_slope(&[(1.0, 0.0), (2.0, 1.0)]), None);
        assert_eq!(loglog_slope(&[(1.0, 1.0), (1.0, 2.0)]), None);
    }
}
