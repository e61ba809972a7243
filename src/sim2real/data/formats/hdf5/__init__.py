"""HDF5 files in robomimic's and ALOHA's layout."""
