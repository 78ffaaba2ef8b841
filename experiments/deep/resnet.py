"""ResNet-18 (He et al., 2016) for small images, with the names of torchvision's weights."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from fragility._parameters import check_choice, check_count

__all__ = ["STEMS", "ResNet18"]

STEMS = ("7x7", "3x3")


class ResNet18(nn.Module):
    """Eight residual blocks of two convolutions each.

    Parameters
    ----------
    n_classes : int
    stem : {"7x7", "3x3"}, default="7x7"
        "7x7": stride 2, then max pooling, and the random start of torchvision's network: what the
        paper's figures come from. "3x3": stride 1, no pooling, PyTorch's own random start: the form
        for small images, as in the code of MedMNIST.
    n_channels : int, default=3

    Examples
    --------
    >>> import torch
    >>> ResNet18(5, stem="3x3")(torch.zeros(2, 3, 28, 28)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self, n_classes: int, stem: Literal["7x7", "3x3"] = "7x7", n_channels: int = 3
    ) -> None:
        super().__init__()
        check_choice(stem, STEMS, "stem")
        n_classes = check_count(n_classes, "n_classes")
        wide = stem == "7x7"
        self.conv1 = (
            nn.Conv2d(n_channels, 64, 7, 2, 3, bias=False)
            if wide
            else nn.Conv2d(n_channels, 64, 3, 1, 1, bias=False)
        )
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if wide else nn.Identity()
        self.layer1 = _stage(64, 64, 1)
        self.layer2 = _stage(64, 128, 2)
        self.layer3 = _stage(128, 256, 2)
        self.layer4 = _stage(256, 512, 2)
        self.fc = nn.Linear(512, n_classes)
        if wide:
            for part in self.modules():
                if isinstance(part, nn.Conv2d):
                    nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits of shape (n, n_classes), of images (n, channels, height, width)."""
        x = self.maxpool(functional.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(x.mean((2, 3)))
        return logits


class _Block(nn.Module):
    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = (
            nn.Identity()
            if stride == 1 and n_in == n_out
            else nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))
        )

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(out + self.downsample(x))


def _stage(n_in: int, n_out: int, stride: int) -> nn.Sequential:
    return nn.Sequential(_Block(n_in, n_out, stride), _Block(n_out, n_out, 1))
