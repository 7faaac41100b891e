//! Docstrings of methods that `MapDataset` and `IterDataset` share.

macro_rules! shared_docs {
    (map) => {
        r#"Applies a function to every element. The returned value is the element, also if it is `None`.

A writable array, dict, list or byte array is copied if the function keeps a reference to it. Other values stay
in place.

In a stream without random access, one thread iterates, and all threads of the loader apply the function.

Args:
    transform (Callable[[Any], Any] | Map): A function of an element, or an object with a method `map`.

Raises:
    TypeError: The transform is neither."#
    };
    (map_with_index) => {
        r#"Applies a function to every element and its index. The index of a `MapDataset` continues over epochs. In a
stream it counts from 0.

Args:
    transform (Callable[[int, Any], Any] | MapWithIndex): A function of the index and the element, or an object with
        a method `map_with_index`.

Raises:
    TypeError: The transform is neither."#
    };
    (random_map) => {
        r#"Applies a function to every element and random numbers; Grain's numbers.

The numbers belong to the index of the element, or to its position in a stream. Threads, workers and a resume do
not change them. The generator is used again for the next element: do not keep it.

Args:
    transform (Callable[[Any, np.random.Generator], Any] | RandomMap): A function of the element and a
        `numpy.random.Generator`, or an object with a method `random_map`.
    seed (int | None): The seed, from 0 to 2^32 - 1; by default, it is derived from the last `seed` stage before it.

Raises:
    ConfigError: There is no seed, neither here nor in a `seed` before the stage."#
    };
    (explain) => {
        r#"Explains the pipeline: its stages, their memory, the parallel stages, and the first element.

This process reads the first elements.

Args:
    threads (int): Threads of the `loader` whose memory is estimated.
    buffer (int): Buffer of that loader."#
    };
    (element_spec) => {
        r#"Shapes and dtypes of the first element, as a tree with the structure of the element.

Reads the first element.

The spec of an array is an `ArraySpec`. The spec of another value is its type. A list or tuple of equal specs
has one entry.

Raises:
    ConfigError: The dataset has no element."#
    };
    (apply) => {
        r#"Calls a function with this dataset and returns its result, so that custom stages fit in a chain.

Args:
    transform (Callable[[MapDataset | IterDataset], Any]): A function of a dataset."#
    };
}
pub(super) use shared_docs;
