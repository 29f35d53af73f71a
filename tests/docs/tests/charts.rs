//! The pictures are what the data beside them give.
use hectare_docs::{charts, root};

#[test]
fn the_pictures_are_drawn_from_the_data() {
    let charts = charts::all().unwrap();
    assert!(!charts.is_empty());
    for (name, text) in charts {
        let path = root().join("docs/src/images").join(name);
        let drawn = std::fs::read_to_string(&path).unwrap();
        assert!(drawn == text, "{name} is not that of docs/data: cargo run -p hectare-docs");
        // Serial, one worker and two in each of the four modes; every line is named.
        assert_eq!((text.matches("class=\"line ").count(), text.matches("class=\"lead ").count()), (12, 12));
    }
}
