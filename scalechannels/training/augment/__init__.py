"""What training does to images beyond showing them: each module is named after its option."""
