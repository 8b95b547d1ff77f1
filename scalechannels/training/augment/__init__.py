"""What a step changes in its images at random: each module is named after its option."""
