"""scikit-learn's interface: images in arrays, trained as `scalechannels train` trains a folder."""
